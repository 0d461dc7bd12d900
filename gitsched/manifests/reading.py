"""One file's bytes → its documents and what is wrong with them. Pure, so a result may be kept by blob id and file name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gitsched.manifests.classify import RESOURCE, Kind, classify, is_blank, is_template, looks_like_manifest
from gitsched.manifests.compose import SYNTAX, Fault, Tree, compose, is_tame
from gitsched.manifests.construct import Builder, weigh
from gitsched.manifests.decoding import decode, has_mark, join_surrogates
from gitsched.manifests.extents import measure, note_item
from gitsched.manifests.file import NO_YAML, File, Parsed, Problem, Status, too_large
from gitsched.manifests.identity import check_identity
from gitsched.manifests.kustomize import FILE_NAMES, list_patches
from gitsched.manifests.limits import LIMITS, MOST_PROBLEMS, Limits
from gitsched.manifests.position import locate, locate_node
from gitsched.model.document import Body, Text
from gitsched.model.finding import Severity
from gitsched.model.issue import Issue, Verdict

__all__ = ["File", "Parsed", "Problem", "locate", "read", "too_large"]

Check = Callable[[Body], Verdict]


def read(
    data: bytes, *, path: str, check: Check | None, marks: tuple[str, ...] = ("spec.replicas",), limits: Limits = LIMITS
) -> File:
    """The documents of a YAML or JSON file with their findings.

    The result depends on the bytes, the last segment of `path`, `check` and `marks` only. No bytes raise.
    """
    if len(data) > limits.size:
        return too_large(len(data), path, limits)
    text = decode(data)
    if isinstance(text, Fault):
        if path.endswith(".json") and b"kind" not in data:
            return File("not-a-resource", reason="data")
        return _refuse(text)
    if path.rpartition("/")[2] in FILE_NAMES:
        return _read_kustomization(text, limits)
    if "kind" not in text and not ("&" in text and "*" in text) and not looks_like_manifest(text) and is_tame(text):
        return File("empty") if is_blank(text) else File("not-a-resource", reason="no value of the file has a kind")
    joined = join_surrogates(text)
    file = _Reader(joined, check, marks, limits).read()
    if joined != text:
        file = _forget_offsets(file)
    return _count_mark(file) if has_mark(data) else file


def _refuse(fault: Fault) -> File:
    return File("invalid", (), (Problem("error", *fault),), unreadable=True)


def _read_kustomization(text: str, limits: Limits) -> File:
    """A kustomization is never a document. What cannot be read of it is kustomize's to report."""
    tree = next(compose(text, limits), None)
    patches: tuple[str, ...] = ()
    if isinstance(tree, Fault) and tree.code != SYNTAX:
        return File("not-a-resource", (), (Problem("error", *tree),), reason="a kustomization")
    if isinstance(tree, Tree):
        fault = weigh(tree, limits)
        if fault:
            return File("not-a-resource", (), (Problem("error", *fault),), reason="a kustomization")
        patches = list_patches(Builder(tree.line).build(tree.node))
    return File("not-a-resource", reason="a kustomization", patches=patches)


def _forget_offsets(file: File) -> File:
    """Offsets into a text other than the file's are of no use: such documents are written anew, never edited."""
    anew = Text(False, 0, 0, None, ())
    return file._replace(documents=tuple(document._replace(text=anew) for document in file.documents))


def _count_mark(file: File) -> File:
    """The byte order mark stands before everything: offsets count it, columns do not."""
    warning = Problem(
        "warning", "byte-order-mark", "the file begins with a byte order mark, which some tools choke on: save it without", 1, 1
    )
    documents = tuple(document._replace(text=_shift(document.text)) for document in file.documents)
    return file._replace(documents=documents, problems=(warning, *file.problems) if file.documents else file.problems)


def _shift(text: Text) -> Text:
    cuts = None if text.cuts is None else tuple((a + 1, b + 1) for a, b in text.cuts)
    return Text(text.whole, text.start + 1, text.end + 1, cuts, tuple((path, a + 1, b + 1) for path, a, b in text.marks))


_BOUNDARY = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[^\r\n]*(?:\r\n|\r|\n|\Z)", re.MULTILINE)


class _Reader:
    """The state of reading one file: what was found so far."""

    __slots__ = (
        "_aliased",
        "_bounds",
        "_check",
        "_limits",
        "_marks",
        "_text",
        "documents",
        "others",
        "problems",
        "reason",
        "unreadable",
    )

    def __init__(self, text: str, check: Check | None, marks: tuple[str, ...], limits: Limits) -> None:
        self._text, self._check, self._marks, self._limits = text, check, marks, limits
        self._aliased = "&" in text and "*" in text
        self._bounds: list[tuple[int, int]] | None = None
        self.documents: list[Parsed] = []
        self.problems: list[Problem] = []
        self.others = 0
        self.unreadable = False
        self.reason = ""

    def read(self) -> File:
        text = self._text
        index = -1
        for piece in compose(text, self._limits):
            if isinstance(piece, Fault):
                if piece.code == SYNTAX and is_template(text):
                    return File("not-a-resource", reason="a template")
                self._refuse(piece)
                continue
            index += 1
            if index >= self._limits.documents:
                self._refuse(_fault_at(piece, "too-many-documents", f"the file holds more than {self._limits.documents} documents"))
                break
            if not self._take(piece, index):
                return File("not-a-resource", reason="a template")
        return self._finish()

    def _refuse(self, fault: Fault) -> None:
        if fault.code == SYNTAX and not looks_like_manifest(self._text):
            self.reason = self.reason or NO_YAML
            self.others += 1
            return
        self.problems.append(Problem("error", *fault))
        self.unreadable = True

    def _take(self, tree: Tree, index: int) -> bool:
        """Read one document; False when it shows that the whole file is a template."""
        fault = weigh(tree, self._limits) if self._aliased else None
        if fault:
            self._refuse(fault)
            return True
        builder = Builder(tree.line)
        value = builder.build(tree.node)
        if "{{" in self._text and any(fault.code == "unsupported-key" for fault in builder.faults):
            return False
        kind = classify(value)
        if kind is RESOURCE:
            start, end = self._extent(tree)
            text = measure(self._text, tree, value, self._marks, start=start, end=end, aliased=self._aliased)
            self._add(tree, value, index, -1, text, builder.faults, builder.warnings)
        elif kind.what == "list":
            self._take_apart(tree, value, index, builder)
        elif kind.what == "nameless":
            self._note_nameless(tree, kind, kind.pointer)
            self.problems.extend(Problem("error", *fault) for fault in builder.faults)
        elif kind.what == "other":
            self.others += 1
            self.reason = self.reason or kind.reason
        return True

    def _take_apart(self, tree: Tree, value: Body, index: int, builder: Builder) -> None:
        """The entries of a List; entries of a typed list, as the API serves them, take kind and apiVersion from the list."""
        kind, version = str(value["kind"])[:-4], value.get("apiVersion")
        places = [locate_node(tree, tree.node, ("items", item)) for item in range(len(value["items"]))]
        ends = [*places[1:], (1 << 60, 0)]
        for item, body in enumerate(value["items"]):
            if kind and version and isinstance(body, dict) and "kind" not in body and "apiVersion" not in body:
                body = {"apiVersion": version, "kind": kind, **body}
            what = classify(body)
            if what is RESOURCE:
                faults, warnings = (
                    [fault for fault in found if places[item] <= (fault.line, fault.column) < ends[item]]
                    for found in (builder.faults, builder.warnings)
                )
                if len(builder.faults) >= MOST_PROBLEMS and places[item] > builder.faults[-1][2:]:
                    # what is wrong here, if anything, was no longer collected
                    faults = [
                        Fault("too-many-problems", "mistakes before this entry of the list must be mended first", *places[item])
                    ]
                self._add(tree, body, index, item, note_item(body), faults, warnings)
            elif what.what == "nameless":
                self._note_nameless(tree, what, ("items", item, *what.pointer))
            else:
                self.others += 1
                self.reason = self.reason or what.reason
        first = places[0] if places else (1 << 60, 0)
        self.problems.extend(Problem("error", *fault) for fault in builder.faults if (fault.line, fault.column) < first)

    def _note_nameless(self, tree: Tree, kind: Kind, pointer: tuple[str | int, ...]) -> None:
        severity: Severity = "error" if kind.known else "warning"
        self.problems.append(Problem(severity, kind.code, kind.reason, *locate_node(tree, tree.node, pointer)))
        if kind.known:
            self.unreadable = True
        else:
            self.others += 1
            self.reason = self.reason or kind.reason

    def _add(
        self, tree: Tree, body: Body, index: int, item: int, text: Text, faults: Iterable[Fault], warnings: Iterable[Fault]
    ) -> None:
        metadata = body["metadata"]
        resource = (body["kind"], metadata.get("namespace") or "", metadata["name"])
        base: tuple[str | int, ...] = ("items", item) if item >= 0 else ()
        problems = [Problem("error", *fault, resource) for fault in faults]
        problems += [Problem("warning", *fault, resource) for fault in warnings]
        issues: list[Issue] = check_identity(body)
        checked = body
        if self._check is not None:
            verdict = self._check(body)
            checked = verdict.body
            known = {issue.pointer for issue in issues}
            issues.extend(issue for issue in verdict.issues if issue.pointer not in known)
        for issue in issues:
            problems.append(
                Problem(issue.severity, issue.code, issue.message, *locate_node(tree, tree.node, (*base, *issue.pointer)), resource)
            )
        broken = any(problem.severity == "error" for problem in problems)
        self.problems += problems
        if item < 0:
            mark = tree.node.start_mark
            line, column = tree.line + mark.line + 1, mark.column + 1
        else:
            line, column = locate_node(tree, tree.node, base)
        self.documents.append(Parsed(checked, index, item, line, column, text, broken))

    def _extent(self, tree: Tree) -> tuple[int, int]:
        """Start and end of a document's text, without the lines `---` and `...` around it."""
        text = self._text
        if self._bounds is None:
            plain = "\n---" not in text and "\n..." not in text and not text.startswith("---")
            self._bounds = [] if plain else [match.span() for match in _BOUNDARY.finditer(text)]
        content = tree.offset + tree.node.start_mark.index
        start, end = 0, len(text)
        for begin, stop in self._bounds:
            if begin > content:
                end = begin
                break
            start = min(stop, content)
        return start, end

    def _finish(self) -> File:
        documents = self.documents
        if len(documents) == 1 and documents[0].item < 0 and not self.others and not self.unreadable:
            documents = [documents[0]._replace(text=documents[0].text._replace(whole=True))]
        problems = tuple(sorted(self.problems, key=lambda problem: (problem.line, problem.column)))
        if self.unreadable or (problems and not documents):
            status: Status = "invalid"
        elif documents:
            status = "resources"
        else:
            status = "not-a-resource" if self.others else "empty"
        return File(status, tuple(documents), problems, self.unreadable, self.reason if status == "not-a-resource" else "")


def _fault_at(tree: Tree, code: str, message: str) -> Fault:
    return Fault(code, message, tree.line + tree.node.start_mark.line + 1, tree.node.start_mark.column + 1)
