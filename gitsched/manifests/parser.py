"""Parse a file's bytes into documents and issues. Pure: the result can be cached by blob id and file name."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from yaml import Node

from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.object_meta import (
    RESOURCE,
    DocumentClass,
    classify_document,
    is_blank,
    is_helm_template,
    looks_like_manifest,
    make_template,
    validate_object_meta,
)
from gitsched.manifests.parsed_file import (
    DEFAULT_LIMITS,
    IDENTITY_ERRORS,
    MAX_ISSUES,
    NOT_YAML,
    FileIssue,
    FileStatus,
    Limits,
    ParsedDocument,
    ParsedFile,
    SharedValues,
    Validator,
    reject_large_file,
)
from gitsched.manifests.source_spans import find_spans, make_item_spans
from gitsched.manifests.yaml_composer import (
    CONFLICT_MARKERS,
    GIT_CRYPT,
    SourceText,
    YamlDocument,
    check_aliases,
    compose_documents,
    is_small,
    read_text,
)
from gitsched.manifests.yaml_errors import SYNTAX_ERROR, ParseError
from gitsched.manifests.yaml_nodes import AMBIGUOUS_VALUE, Constructor, list_item_nodes, locate_node
from gitsched.model.document import Body, SourceSpans, mentions_config_map_data
from gitsched.model.finding import INTERNAL_ERROR, Issue, Severity, ValidationResult
from gitsched.model.system_errors import is_bug

__all__ = ["FileIssue", "ParsedDocument", "ParsedFile", "parse_file", "reject_large_file"]


def parse_file(
    data: bytes,
    *,
    path: str,
    validate: Validator | None,
    editable: tuple[str, ...] = ("spec.replicas",),
    limits: Limits = DEFAULT_LIMITS,
    strict: bool = False,
    shared: SharedValues | None = None,
) -> ParsedFile:
    """Parse the documents of a YAML or JSON file, with their findings. With `strict`, unknown fields of metadata are errors.

    `shared` has values of other files, so that equal values are one object. It is given where many files are read: then most of them are
    read by a faster parser, which returns the same. The result depends only on the bytes, the last segment of `path`, and the other
    arguments except `shared`. It does not raise an error for any input.
    """
    if len(data) > limits.size:
        return reject_large_file(len(data), path, limits)
    source = read_text(data)
    if isinstance(source, ParseError):
        is_manifest = b"kind" in data.replace(b"\0", b"")
        if not is_manifest and (path.endswith(".json") or source.code == CONFLICT_MARKERS):
            return ParsedFile("not-a-resource", reason="data")
        return _make_invalid_file(source)
    text = source.text
    if path.rpartition("/")[2] in KUSTOMIZATION_NAMES:
        return _parse_kustomization(text, limits)
    if (
        "kind" not in text
        and not ("&" in text and "*" in text)
        and not looks_like_manifest(text)
        and not mentions_config_map_data(text)
        and is_small(text)
    ):
        return ParsedFile("empty") if is_blank(text) else ParsedFile("not-a-resource", reason="no value of the file has a kind")
    if shared is not None and source.normalized == text and not source.byte_order_mark:
        from gitsched.manifests.subset_parser import parse_common_file  # a few files are parsed without it

        common = parse_common_file(text, validate, editable, shared)
        if common is not None:
            return common
    file = _FileParser(source, validate, editable, limits, strict).parse()
    if source.normalized != text:
        file = _drop_spans(file)
    return _add_byte_order_mark(file) if source.byte_order_mark else file


def _make_invalid_file(error: ParseError) -> ParsedFile:
    if error.code == GIT_CRYPT:
        return ParsedFile("not-a-resource", (), (FileIssue("info", *error),), reason="encrypted by git-crypt")
    return ParsedFile("invalid", (), (FileIssue("error", *error),), unreadable=True)


def _parse_kustomization(text: str, limits: Limits) -> ParsedFile:
    """Parse a kustomization, which is never a document. Its wrong fields are for kustomize to report."""
    tree = next(compose_documents(text, limits), None)
    found = Kustomization()
    if isinstance(tree, ParseError) and not (tree.code == SYNTAX_ERROR and is_helm_template(text)):
        return ParsedFile("not-a-resource", (), (FileIssue("error", *tree),), reason="a kustomization")
    if isinstance(tree, YamlDocument):
        error = check_aliases(tree, limits)
        if error:
            return ParsedFile("not-a-resource", (), (FileIssue("error", *error),), reason="a kustomization")
        from gitsched.manifests import kustomization  # few files are kustomizations

        found = kustomization.parse_kustomization(tree)
        if kustomization.exceeds_limit(found):
            reason = f"the kustomization has more than {kustomization.MAX_ENTRIES} references or changes: divide it"
            issue = FileIssue("error", "kustomization-limit", reason, *locate_node(tree, tree.node, ()))
            return ParsedFile("not-a-resource", (), (issue,), reason="a kustomization", kustomization=found)
    return ParsedFile("not-a-resource", reason="a kustomization", kustomization=found)


def _drop_spans(file: ParsedFile) -> ParsedFile:
    """Drop offsets into a text other than the file's: such documents are written as new text, never edited."""
    no_spans = SourceSpans(False, 0, 0, None, ())
    return file._replace(documents=tuple(document._replace(spans=no_spans) for document in file.documents))


def _add_byte_order_mark(file: ParsedFile) -> ParsedFile:
    """Shift the offsets by the byte order mark: offsets count it, columns do not."""
    warning = FileIssue(
        "warning",
        "byte-order-mark",
        "the file begins with a byte order mark, which some tools cannot read: save it without one",
        1,
        1,
    )
    documents = tuple(document._replace(spans=_shift_spans(document.spans)) for document in file.documents)
    return file._replace(documents=documents, issues=(warning, *file.issues) if file.documents else file.issues)


def _shift_spans(text: SourceSpans) -> SourceSpans:
    cuts = None if text.server_owned is None else tuple((a + 1, b + 1) for a, b in text.server_owned)
    editable = tuple((path, a + 1, b + 1) for path, a, b in text.editable)
    insertions = tuple(point._replace(offset=point.offset + 1) for point in text.insertions)
    return SourceSpans(text.whole_file, text.start + 1, text.end + 1, cuts, editable, insertions)


DOCUMENT_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[^\r\n]*(?:\r\n|\r|\n|\Z)", re.MULTILINE)


class _FileParser:
    """The state of parsing one file: the documents and issues found so far."""

    __slots__ = (
        "_editable",
        "_end",
        "_has_aliases",
        "_has_braces",
        "_limits",
        "_markers",
        "_may_differ",
        "_strict",
        "_text",
        "_validate",
        "documents",
        "issues",
        "others",
        "reason",
        "unreadable",
    )

    def __init__(
        self, source: SourceText, validate: Validator | None, editable: tuple[str, ...], limits: Limits, strict: bool
    ) -> None:
        text, self._strict, self._may_differ = source.normalized, strict, source.may_differ
        self._text, self._validate, self._editable, self._limits = text, validate, editable, limits
        self._has_aliases = "&" in text and "*" in text
        self._has_braces = "{{" in text
        self._end = 0  # of the document before
        self._markers: list[tuple[int, int]] | None = None
        self.documents: list[ParsedDocument] = []
        self.issues: list[FileIssue] = []
        self.others: list[int] = []
        self.unreadable = False
        self.reason = ""

    def parse(self) -> ParsedFile:
        text = self._text
        index = -1
        for piece in compose_documents(text, self._limits):
            if isinstance(piece, ParseError):
                if piece.code == SYNTAX_ERROR and is_helm_template(text):
                    return make_template(text)
                self._add_error(piece)
                continue
            index += 1
            if index >= self._limits.documents:
                self._add_error(
                    _error_at(piece, "too-many-documents", f"the file holds more than {self._limits.documents} documents")
                )
                break
            try:
                is_document = self._parse_document(piece, index)
            except Exception as error:
                if not is_bug(error):
                    raise
                self._add_error(_error_at(piece, INTERNAL_ERROR, _describe_bug(error)))
                continue
            if not is_document:
                return make_template(text)
        return self._make_result()

    def _add_error(self, error: ParseError) -> None:
        if error.code == SYNTAX_ERROR and not looks_like_manifest(self._text):
            self.reason = self.reason or NOT_YAML
            self.others.append(error.line)
            return
        self.issues.append(FileIssue("error", *error))
        self.unreadable = True

    def _parse_document(self, tree: YamlDocument, index: int) -> bool:
        """Parse one document; return False when it shows that the complete file is a template."""
        error = check_aliases(tree, self._limits) if self._has_aliases else None
        if error:
            self._add_error(error)
            return True
        builder = Constructor(tree.line, tree.node)
        value = builder.value
        if self._may_differ or builder.differences:
            self._add_differences(tree, builder)
        if self._has_braces and any(error.code == "unsupported-key" for error in builder.errors):
            return False
        kind = classify_document(value)
        if kind is RESOURCE:
            start, end = self._find_extent(tree)
            text = find_spans(self._text, tree, value, self._editable, start=start, end=end, has_aliases=self._has_aliases)
            self._add_document(tree, tree.node, value, index, -1, text, builder.errors, builder.warnings)
        elif kind.category == "list":
            self._parse_list(tree, value, index, builder)
        elif kind.category == "nameless":
            self._add_unnamed(tree, tree.node, kind)
            self.issues.extend(FileIssue("error", *error) for error in builder.errors)
        elif kind.category == "other" or builder.errors:  # an empty document may have a tag
            self.others.append(locate_node(tree, tree.node, ())[0])
            self.reason = self.reason or kind.reason
        return True

    def _add_differences(self, tree: YamlDocument, builder: Constructor) -> None:
        """Add what a reader of Kubernetes refuses or reads differently to the findings about the text of a document."""
        if self._may_differ:
            from gitsched.manifests.reader_differences import find_differences  # few files need it

            found = find_differences(self._text, tree, max(self._end, tree.offset))
            if tree.node.value:  # what precedes an empty document is delivered with the next one
                self._end = tree.offset + tree.node.end_mark.index
            builder.differences += found.errors
            builder.warnings = sorted((*builder.warnings, *found.warnings), key=itemgetter(2, 3))
        builder.errors = sorted((*builder.errors, *builder.differences), key=itemgetter(2, 3))

    def _parse_list(self, tree: YamlDocument, value: Body, index: int, builder: Constructor) -> None:
        """Parse the items of a List; items of a typed list, as the API serves them, take kind and apiVersion from the list."""
        kind, version = str(value["kind"])[:-4], value.get("apiVersion")
        nodes = list_item_nodes(tree.node, len(value["items"]))
        locations = [locate_node(tree, node, ()) for node in nodes]
        ends = [*locations[1:], (1 << 60, 0)]
        for item, body in enumerate(value["items"]):
            if kind and version and isinstance(body, dict) and "kind" not in body and "apiVersion" not in body:
                body = {"apiVersion": version, "kind": kind, **body}
            item_class = classify_document(body)
            if item_class is RESOURCE:
                errors, warnings = _select_issues(builder, locations[item], ends[item])
                self._add_document(tree, nodes[item], body, index, item, make_item_spans(body), errors, warnings)
            elif item_class.category == "nameless":
                self._add_unnamed(tree, nodes[item], item_class)
            else:
                self.others.append(locations[item][0])
                plain = "a List within a List" if item_class.category == "list" else "an empty item of a List"
                self.reason = self.reason or item_class.reason or plain
        first = locations[0] if locations else (1 << 60, 0)
        self.issues.extend(FileIssue("error", *error) for error in builder.errors if (error.line, error.column) < first)

    def _add_unnamed(self, tree: YamlDocument, node: Node, kind: DocumentClass) -> None:
        severity: Severity = "error" if kind.is_known else "warning"
        self.issues.append(FileIssue(severity, kind.code, kind.reason, *locate_node(tree, node, kind.pointer)))
        if kind.is_known:
            self.unreadable = True
        else:
            self.others.append(locate_node(tree, node, ())[0])
            self.reason = self.reason or kind.reason

    def _add_document(
        self,
        tree: YamlDocument,
        node: Node,
        body: Body,
        index: int,
        item: int,
        text: SourceSpans,
        errors: Iterable[ParseError],
        warnings: Iterable[ParseError],
    ) -> None:
        metadata = body["metadata"]
        resource = (body["kind"], metadata.get("namespace") or "", metadata["name"])
        issues_of_document = [FileIssue("error", *error, resource) for error in errors]
        issues_of_document += [FileIssue("warning", *error, resource) for error in warnings]
        issues: list[Issue] = validate_object_meta(body)
        if self._strict:
            issues = [issue.as_error() if issue.code == "unknown-field" else issue for issue in issues]
        checked = body
        if self._validate is not None:
            try:
                result = self._validate(body)
            except Exception as error:
                if not is_bug(error):
                    raise
                result = ValidationResult(body, (Issue("error", INTERNAL_ERROR, _describe_bug(error)),))
            checked = result.body
            reported_pointers = {issue.pointer for issue in issues}
            issues.extend(issue for issue in result.issues if issue.pointer not in reported_pointers)
        line, column = tree.line + node.start_mark.line + 1, node.start_mark.column + 1
        errors_found = [problem.code for problem in issues_of_document if problem.severity == "error"]
        errors_found += [issue.code for issue in issues if issue.severity == "error"]
        broken = bool(errors_found)
        listed = MAX_ISSUES - len(issues_of_document)
        if len(issues) >= listed:
            issues = sorted(issues, key=lambda issue: issue.severity != "error")[: max(listed, 0)]
            issues_of_document.append(_make_rest(broken, line, column, resource))
        for issue in issues:
            location = locate_node(tree, node, issue.pointer, at_key=issue.code == "unknown-field")
            issues_of_document.append(FileIssue(issue.severity, issue.code, issue.message, *location, resource))
        self.issues += issues_of_document
        self.unreadable |= _hides_object(errors_found, node)
        self.documents.append(ParsedDocument(checked, index, item, line, column, text, broken))

    def _find_extent(self, tree: YamlDocument) -> tuple[int, int]:
        """Return start and end of a document's text, without the lines `---` and `...` around it."""
        text = self._text
        if self._markers is None:
            plain = "\n---" not in text and "\n..." not in text and not text.startswith("---")
            self._markers = [] if plain else [match.span() for match in DOCUMENT_MARKER.finditer(text)]
        content = tree.offset + tree.node.start_mark.index
        position = bisect_right(self._markers, (content, len(text)))  # the first marker after the content
        start = min(self._markers[position - 1][1], content) if position else 0
        return start, self._markers[position][0] if position < len(self._markers) else len(text)

    def _make_result(self) -> ParsedFile:
        documents = self.documents
        if len(documents) == 1 and documents[0].item < 0 and not self.others and not self.unreadable:
            documents = [documents[0]._replace(spans=documents[0].spans._replace(whole_file=True))]
        # A schema says why an ambiguous value is wrong, and what to write.
        wrong = {issue[3:5] for issue in self.issues if issue.severity == "error" and issue.code != AMBIGUOUS_VALUE}
        issues = (issue for issue in self.issues if issue.code != AMBIGUOUS_VALUE or issue[3:5] not in wrong)
        sorted_issues = tuple(sorted(issues, key=itemgetter(3, 4)))
        if self.unreadable or (sorted_issues and not documents):
            status: FileStatus = "invalid"
        elif documents:
            status = "resources"
        else:
            status = "not-a-resource" if self.others else "empty"
        reason = self.reason if status == "not-a-resource" else ""
        return ParsedFile(status, tuple(documents), sorted_issues, self.unreadable, reason, None, tuple(self.others))


def _make_rest(is_error: bool, line: int, column: int, resource: tuple[str, str, str]) -> FileIssue:
    message = f"only {MAX_ISSUES} mistakes of this document are listed: correct them first, because it may have more"
    return FileIssue("error" if is_error else "warning", "too-many-problems", message, line, column, resource)


def _hides_object(errors: list[str], node: Node) -> bool:
    """Return whether errors of an object leave open which object of the file is meant, or whether two were meant: where the line `---`
    between them is missing, keys are duplicate that identify an object."""
    if "duplicate-key" not in errors:
        return not IDENTITY_ERRORS.isdisjoint(errors)
    metadata = [value for key, value in node.value if key.value == "metadata"]
    keys, names = ([key.value for key, _ in part.value] for part in (node, metadata[0] if metadata else node))
    repeated = [key for key in ("apiVersion", "kind", "metadata") if keys.count(key) > 1]
    return bool(repeated or names.count("name") > 1 or names.count("namespace") > 1 or not IDENTITY_ERRORS.isdisjoint(errors))


def _describe_bug(error: Exception) -> str:
    from gitsched.model.fault import describe_fault  # only after a bug

    return f"{describe_fault(error)} while this document was read: it counts as broken; report this bug with the id"


def _error_at(tree: YamlDocument, code: str, message: str) -> ParseError:
    return ParseError(code, message, tree.line + tree.node.start_mark.line + 1, tree.node.start_mark.column + 1)


def _select_issues(builder: Constructor, start: tuple[int, int], end: tuple[int, int]) -> tuple[list[ParseError], list[ParseError]]:
    """Return the errors and warnings about an item of a list, from its position to that of the next one."""
    errors, warnings = (
        [error for error in found if start <= (error.line, error.column) < end] for found in (builder.errors, builder.warnings)
    )
    if len(builder.errors) >= MAX_ISSUES and start > builder.errors[-1][2:]:  # those of this item were no longer collected
        errors = [ParseError("too-many-problems", "earlier items of the list have too many errors: fix them first", *start)]
    return errors, warnings
