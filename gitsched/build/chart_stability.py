"""Find what a Helm chart renders that does not follow from the files of the commit: random values, the time, the order of a dict, and
objects of the cluster.

A chart that calls a function of `unstable_functions` is rendered again with other results of these functions, the same ones in each run. It
is stable if that prints the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from gitsched.build.chart_archives import SUFFIXES, edit_archive
from gitsched.build.commit_files import BuildProblem, join_path
from gitsched.build.scratch import InputError
from gitsched.build.template_scanner import replace_calls, scan_template
from gitsched.build.unstable_functions import FUNCTIONS, LOOKUP, write_definitions
from gitsched.manifests.kubectl_values import READINGS
from gitsched.model.bisection import bisect_failures
from gitsched.named_tuples import NamedTuple

_EVALUATE = b"tpl"
"""The function that evaluates a text as a template: values and other files may call functions as well."""
_HIDDEN = re.compile(rb"\b(?:rand[A-Z]|gen[A-Z]|uuidv4|shuffle|bcrypt|htpasswd|encryptAES)")
"""Names in texts that templates may put together to a template."""
_ADDRESS = re.compile(rb"\b0x([0-9a-f]{9,16})\b")
"""How a pointer is printed."""
_SOURCE = re.compile(rb"^# Source: [^/\n]*/([^\n]*)$", re.MULTILINE)

Render = Callable[[Mapping[str, bytes]], "bytes | str"]
"""Returns the output with other contents for some files, or an error, an InputError if the files cause it."""


class ChartSources(NamedTuple):
    """What is rendered: its `name` for messages, the `directories` of its charts, and their `files` by path. `others` are files outside of
    the charts, such as values, which `tpl` may evaluate."""

    name: str
    directories: Sequence[str]
    files: Mapping[str, bytes]
    others: Mapping[str, bytes] = {}


class _Call(NamedTuple):
    """A call of an unstable function: in a file, or in a `member` of an archive."""

    name: bytes
    path: str
    member: str
    line: int


class _MachineError(Exception):
    """Another rendering fails, for another reason than the files."""


def is_error(problem: BuildProblem) -> bool:
    """Return whether nothing is built because of a problem."""
    return problem.code not in ("helm-lookup", *READINGS)


def is_repeatable(problem: BuildProblem) -> bool:
    """Return whether a problem of a chart is one in each run with the same files and programs."""
    return problem.code in ("helm-random", "helm-lookup", *READINGS)


def check_stable(charts: ChartSources, output: bytes, render: Render) -> list[BuildProblem]:
    """Return an error if other results of functions that return something else in each run change the output, and a warning if another
    result of `lookup` does. The output is rendered again only if a template calls such a function."""
    try:
        return list(_StabilityCheck(charts, output, render).list_problems())
    except _MachineError as error:
        main = join_path(charts.directories[0], "Chart.yaml")
        return [BuildProblem("helm-build", f"{charts.name} cannot be rendered again: {error}", main)]


class _StabilityCheck:
    def __init__(self, charts: ChartSources, output: bytes, render: Render) -> None:
        self._charts, self._output, self._render = charts, output, render
        self._calls: list[_Call] = []
        self._changed: dict[str, bytes] = {}
        self._evaluation: _Call | None = None
        self._rendered: dict[tuple[int, int, bool], bytes | str] = {}

    def list_problems(self) -> Iterator[BuildProblem]:
        """Yield the problems, at most one of each code."""
        unreadable = self._read_templates()
        if unreadable is not None:
            yield unreadable
            return
        address = next(
            (found.start() for found in _ADDRESS.finditer(self._output) if not self._has_text(re.escape(found[1]))), None
        )
        if address is not None:
            yield self._describe_address(address)
            return
        names = {call.name for call in self._calls}
        outcomes = max((FUNCTIONS[name].outcomes for name in names), default=0)
        hidden = self._find_hidden() if outcomes == 0 else None
        if hidden is None and self._is_stable(outcomes, LOOKUP in names):
            return
        unstable = self._find_unstable(max(2, outcomes)) if outcomes else hidden
        if unstable is not None:
            yield self._describe_unstable(unstable)
        elif LOOKUP in names and self._run(0, found=True) != self._run(0):
            lookup = self._find_call(0, found=True)
            yield self._describe(lookup, "helm-lookup", f"uses lookup, and {FUNCTIONS[LOOKUP].cure}")

    def _read_templates(self) -> BuildProblem | None:
        """Replace calls in templates, and if one of them evaluates texts, in all files. Return a problem if an archive cannot be read."""
        for path, data in sorted(self._charts.files.items()):
            try:
                self._edit(path, data, self._find_evaluation)
            except ValueError as error:
                return BuildProblem("helm-build", f"{error}: {self._charts.name} is not rendered", path)
        files = {**self._charts.files, **(self._charts.others if self._evaluation is not None else {})}
        for path, data in sorted(files.items()):
            changed = self._edit(path, data, self._replace_calls)
            if changed is not data:
                self._changed[path] = changed
        return None

    def _edit(self, path: str, data: bytes, edit: Callable[[str, str, bytes], bytes]) -> bytes:
        if path.endswith(SUFFIXES) and path in self._charts.files and "/charts/" in f"/{path}":
            return edit_archive(data, lambda member, content: edit(path, member, content))
        return edit(path, "", data)

    def _find_evaluation(self, path: str, member: str, data: bytes) -> bytes:
        if self._evaluation is None and _is_template(member or path) and _EVALUATE in data:
            calls = scan_template(data, (_EVALUATE,)).calls
            if calls:
                self._evaluation = _Call(_EVALUATE, path, member, data.count(b"\n", 0, calls[0].start) + 1)
        return data

    def _replace_calls(self, path: str, member: str, data: bytes) -> bytes:
        def add(name: bytes, line: int) -> int:
            self._calls.append(_Call(name, path, member, line))
            return len(self._calls) - 1

        if not _is_template(member or path) and self._evaluation is None:
            return data
        return replace_calls(data, FUNCTIONS, add, literals=self._evaluation is not None)

    def _run(self, outcome: int, limit: int | None = None, *, found: bool = False) -> bytes | str:
        """Render with an outcome of the first calls, up to a limit, and outcome 0 of the others; those of lookup find something or not."""
        limit = len(self._calls) if limit is None else limit
        key = (outcome, limit, found)
        if key not in self._rendered:
            definitions = write_definitions(outcome, found, limit)
            added = {join_path(directory, "templates/_gitsched.tpl"): definitions for directory in self._charts.directories}
            self._rendered[key] = self._render_again({**self._changed, **added})
        return self._rendered[key]

    def _render_again(self, changed: Mapping[str, bytes]) -> bytes | str:
        done = self._render(changed)
        if isinstance(done, str) and not isinstance(done, InputError):
            raise _MachineError(done)
        return done

    def _is_stable(self, outcomes: int, looks_up: bool) -> bool:
        """Return whether all outcomes print what helm does, which most charts show with the fewest renderings."""
        last = max(0, outcomes - 1)
        runs = [(outcome, looks_up and outcome == last) for outcome in range(max(outcomes, int(looks_up)))]
        return all(self._run(outcome, found=found) == self._output for outcome, found in runs)

    def _find_hidden(self) -> _Call | None:
        """Return what evaluates texts if these call random functions although no file does."""
        hidden = self._evaluation is not None and self._has_text(_HIDDEN.pattern) and self._render_again({}) != self._output
        return self._evaluation if hidden else None

    def _find_unstable(self, outcomes: int) -> _Call | None:
        """Return a call on whose outcome the output depends. Each outcome is compared with the first one, not with the output: a text with
        a template that nothing evaluates is printed with what replaces its calls."""
        first = self._run(0)
        other = next((outcome for outcome in range(1, outcomes) if self._run(outcome) != first), None)
        if other is not None:
            self._rendered.pop((0, len(self._calls), False))
            hidden = self._evaluation if self._evaluation is not None and self._run(0) != first else None
            return hidden or self._find_call(other)
        # Other results are an error, which says nothing about those that helm returns: certificates, which are never the same.
        if isinstance(first, str) and self._render_again({}) != self._output:
            return min(self._calls, key=lambda call: FUNCTIONS[call.name].outcomes or outcomes)
        return None

    def _find_call(self, outcome: int, *, found: bool = False) -> _Call:
        """Return a call whose outcome changes what is rendered with outcome 0 of all calls."""
        reference = self._run(0)
        return self._calls[bisect_failures(len(self._calls), lambda limit: self._run(outcome, limit, found=found) != reference)]

    def _has_text(self, pattern: bytes) -> bool:
        """Return whether a file matches a pattern."""
        search, found = re.compile(pattern).search, False

        def match(_: str, __: str, data: bytes) -> bytes:
            nonlocal found
            found = found or search(data) is not None
            return data

        for path, data in {**self._charts.files, **self._charts.others}.items():
            self._edit(path, data, match)
        return found

    def _describe_unstable(self, call: _Call) -> BuildProblem:
        cure = FUNCTIONS[call.name].cure if call.name in FUNCTIONS else "it evaluates a text that makes up a value: set that value"
        return self._describe(call, "helm-random", f"renders something else each time because of {call.name.decode()} here: {cure}")

    def _describe(self, call: _Call, code: str, text: str) -> BuildProblem:
        """Return a problem at a call; one in a file that is none of the charts is at what evaluates it."""
        place = call if call.path in self._charts.files or self._evaluation is None else self._evaluation
        inside = f" ({place.member}, line {place.line})" if place.member else ""
        return BuildProblem(code, f"{self._charts.name} {text}{inside}", place.path, 1 if place.member else place.line)

    def _describe_address(self, position: int) -> BuildProblem:
        sources = list(_SOURCE.finditer(self._output, 0, position))
        paths = (
            join_path(directory, sources[-1][1].decode("utf-8", "replace")) for directory in self._charts.directories if sources
        )
        path = next((path for path in paths if path in self._charts.files), join_path(self._charts.directories[0], "Chart.yaml"))
        text = 'renders something else each time: it prints the address of an object, as `printf "%p"` and `toString $` do'
        return BuildProblem("helm-random", f"{self._charts.name} {text}", path)


def _is_template(path: str) -> bool:
    return "/templates/" in f"/{path}" and not path.endswith("/NOTES.txt")
