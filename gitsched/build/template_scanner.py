"""Find the calls of functions in Go templates, and replace them by calls of named templates that return something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator

from gitsched.named_tuples import NamedTuple

_TOKEN = re.compile(
    rb"(?P<space>(?:\s|\\[nrt])+)"  # a text in JSON has \n for the end of a line
    rb"|(?P<end>-?\}\})"
    # Lengths have limits, so that many quotes that nothing closes are read in linear time.
    rb'|(?P<text>\\"(?:\\\\.|[^\\]|\\(?!["\\])){0,2000}\\"|"(?:\\.|[^"\\\n]){0,20000}"|`[^`]*`|\'(?:\\.|[^\'\\\n]){0,10}\')'
    rb"|(?P<name>[A-Za-z_]\w*)"
    rb"|(?P<operand>[.$]\w*|\d[\w.]*)"
    rb"|(?P<open>\()|(?P<close>\))|(?P<pipe>\|)|(?P<assign>:?=)|(?P<other>.)",
    re.DOTALL,
)
_KEYWORDS = frozenset({b"if", b"else", b"with", b"range", b"template", b"block", b"define", b"end", b"break", b"continue"})
_OPENING = frozenset({b"if", b"with", b"range", b"block", b"define"})
_NAMED = frozenset({b"template", b"block", b"define"})
"""Keywords before the name of a template."""
_VARIABLE = b"$gitsched"
PREFIX = "gitsched."
"""The beginning of the names of templates that replace functions."""


class FunctionCall(NamedTuple):
    """A call of a function. `start` and `stop` are the positions of its name, `end` that after its arguments. `is_operand`: it has no
    arguments, because it is an argument itself or has a field. A variable for it can be declared at `scope`; `trims`: white space before
    that is cut."""

    name: bytes
    start: int
    stop: int
    end: int
    is_operand: bool
    scope: int
    trims: bool


class TemplateCalls(NamedTuple):
    """Calls in a template in the order of their names, and its `literals`: positions of texts that contain templates."""

    calls: list[FunctionCall]
    literals: list[tuple[int, int]]


class _Frame:
    """A pipeline: the call that its last command is, and whether a command begins."""

    __slots__ = ("begins", "call")

    def __init__(self) -> None:
        self.begins, self.call = True, -1


def scan_template(data: bytes, names: Container[bytes]) -> TemplateCalls:
    """Find the calls of functions with these names in all actions of a template. What follows an action without an end is not read."""
    found = TemplateCalls([], [])
    scopes: list[tuple[int, bool]] = []
    position = data.find(b"{{")
    while position >= 0:
        content = position + 2
        trims = data[content : content + 1] == b"-" and data[content + 1 : content + 2].isspace()
        content += trims
        comment = re.compile(rb"\s*/\*").match(data, content)
        if comment is not None:
            closed = data.find(b"*/", comment.end())
            position = data.find(b"{{", closed) if closed >= 0 else -1
            continue
        action = _Action(data, content, names, found, (position, trims), scopes)
        end = action.read()
        position = data.find(b"{{", end) if end >= 0 else -1
    found.calls.sort(key=lambda call: call.start)
    return found


class _Action:
    """Reads one action. `place` is where it begins, and whether it cuts white space; `scopes` are those of the enclosing blocks."""

    def __init__(
        self,
        data: bytes,
        content: int,
        names: Container[bytes],
        found: TemplateCalls,
        place: tuple[int, bool],
        scopes: list[tuple[int, bool]],
    ) -> None:
        self._data, self._position, self._names = data, content, names
        self._found, self._place, self._scopes = found, place, scopes
        self._keyword = b""
        self._last = content
        self._frames = [_Frame()]

    def read(self) -> int:
        """Add the calls of the action to what was found; return its end, or -1 if it has none."""
        calls = len(self._found.calls)
        for token in self._list_tokens():
            kind, frame = token.lastgroup, self._frames[-1]
            if kind == "end":
                self._close_command(frame)
                return token.end()
            if kind == "name":
                self._read_name(token, frame)
            elif kind == "open":
                frame.begins = False
                self._frames.append(_Frame())
            elif kind == "close":
                self._close_command(frame)
                if len(self._frames) > 1:
                    self._frames.pop()
            elif kind in ("pipe", "assign"):
                self._close_command(frame)
                frame.begins = True
            elif kind == "text" and self._keyword in _NAMED and frame.begins:
                pass  # the name of a template: its argument begins after it
            else:
                frame.begins = False
            if kind == "text" and b"{{" in token[0]:
                width = 2 if token[0].startswith(b"\\") else 1
                self._found.literals.append((token.start() + width, token.end() - width))
            self._last = token.end()
        del self._found.calls[calls:]
        return -1

    def _list_tokens(self) -> Iterator[re.Match[bytes]]:
        while (token := _TOKEN.match(self._data, self._position)) is not None:
            self._position = token.end()
            if token.lastgroup != "space":
                yield token

    def _read_name(self, token: re.Match[bytes], frame: _Frame) -> None:
        name = token[0]
        if name in _KEYWORDS and len(self._frames) == 1 and frame.begins:
            self._read_keyword(name)
            return
        begins, frame.begins = frame.begins, False
        if name not in self._names:
            return
        has_field = self._data[token.end() : token.end() + 1] == b"."
        if begins and not has_field:
            frame.call = len(self._found.calls)
        scope = self._scopes[-1] if self._keyword == b"else" and self._scopes else self._place
        call = FunctionCall(name, token.start(), token.end(), token.end(), not begins or has_field, *scope)
        self._found.calls.append(call)

    def _read_keyword(self, name: bytes) -> None:
        if not self._keyword:
            self._keyword = name
            if name in _OPENING:
                self._scopes.append(self._place)
            elif name == b"end" and self._scopes:
                self._scopes.pop()

    def _close_command(self, frame: _Frame) -> None:
        if frame.call >= 0:
            self._found.calls[frame.call] = self._found.calls[frame.call]._replace(end=self._last)
            frame.call = -1


Number = Callable[[bytes, int], int]
"""Returns the number of a call, given the name of the function and the line, from 1."""


def replace_calls(data: bytes, names: Container[bytes], number: Number, *, literals: bool) -> bytes:
    """Return a template in which named templates are included in place of functions, and `data` itself if it calls none of them.

    `keys $labels | first` becomes `list $gitsched 7 $labels | include "gitsched.keys" | get $gitsched | first`. The named template gets the
    list and sets its result in the dict `$gitsched`, so that it can return any type; what it prints is the key of the result. `number` is
    called for each call in its order. With `literals`, templates in texts of actions are changed as well.
    """
    return _replace(data, names, number, literals, b"`", 1)


def _replace(data: bytes, names: Container[bytes], number: Number, literals: bool, quote: bytes, line: int) -> bytes:
    found = scan_template(data, names)
    steps: list[tuple[int, FunctionCall | int]] = [(call.start, call) for call in found.calls]
    steps += found.literals if literals else []
    # Position, order at the same position (what follows an inner call before what follows an outer one), bytes that are removed, and text.
    edits: list[tuple[int, int, int, bytes]] = []
    declared: set[int] = set()
    counted = 0
    for start, step in sorted(steps, key=lambda step: step[0]):
        line, counted = line + data.count(b"\n", counted, start), start
        if isinstance(step, FunctionCall):
            edits += _replace_call(step, quote, number(step.name, line))
            if step.scope not in declared:
                declared.add(step.scope)
                edits.append((step.scope, 0, 0, b"{{%s %s := dict }}" % (b"-" if step.trims else b"", _VARIABLE)))
        else:
            before = data[start:step]
            inner = b'"' if data[start - 1 : start] == b"`" else b"`"
            after = _replace(before, names, number, literals, inner, line)
            if after is not before:
                edits.append((start, 1, len(before), after))
    return _apply(data, edits) if edits else data


def _replace_call(call: FunctionCall, quote: bytes, number: int) -> list[tuple[int, int, int, bytes]]:
    before, after = (b"(", b")") if call.is_operand else (b"", b"")
    name = quote + PREFIX.encode() + call.name + quote
    return [
        (call.start, 1, call.stop - call.start, b"%slist %s %d" % (before, _VARIABLE, number)),
        (call.end, -call.start, 0, b" | include %s | get %s%s" % (name, _VARIABLE, after)),
    ]


def _apply(data: bytes, edits: list[tuple[int, int, int, bytes]]) -> bytes:
    parts, position = [], 0
    for start, _, removed, text in sorted(edits):
        parts += [data[position:start], text]
        position = start + removed
    return b"".join([*parts, data[position:]])
