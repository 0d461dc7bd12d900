"""Substitute `${name}` in text as Flux does after a build: with defaults, the functions of Bash, and `$${name}` for a literal `${name}`.

Source: fluxcd/pkg/envsubst, which differs from Bash in details: all of `:-`, `:=`, `:+`, `:?` and `=` give the default where the value is
empty, and offsets and lengths count bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gitsched.manifests.glob import list_matching_lengths, parse_glob
from gitsched.named_tuples import NamedTuple

MAX_OUTPUT = 16 << 20
"""Characters of one substituted text."""
MAX_DEPTH = 50
"""Substitutions inside of each other."""
MAX_TRIMMED = 4_096
"""Characters of a value that `#` and `%` compare with a pattern."""
MAX_COMPARED = 1 << 20
"""Characters that all `#` and `%` of one text compare with patterns."""
MAX_READ = 64 << 20
"""Characters of the values of all variables that one text names: functions read values of which nothing is in the result."""

_NAME = re.compile(r"[^\W]+")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DEFAULT = re.compile(r":[=\-?+]|=")
_CASE = re.compile(r"[,^]{1,2}")
_TRIM = re.compile(r"#{1,2}|%{1,2}")
_REPLACE = re.compile(r"/[/#%]?")
_COLONS, _SLASHES = re.compile(":+"), re.compile("/*")


class SubstitutionError(ValueError):
    """A text that cannot be substituted. `variable` is the one without a value, or "" if the syntax is wrong."""

    def __init__(self, message: str, variable: str = "") -> None:
        super().__init__(message)
        self.variable = variable


class VariableValues(NamedTuple):
    """The values of variables. `unknown` variables are set elsewhere, and if it is `incomplete`, others may be: no default is certain."""

    values: Mapping[str, str]
    unknown: frozenset[str] = frozenset()
    incomplete: bool = False


def substitute_variables(text: str, variables: VariableValues) -> str:
    """Return the text with all variables replaced. Raises SubstitutionError for a variable without value and default, and for a syntax that
    Flux does not accept."""
    return _Substitution(text, variables).run()


class _Substitution:
    def __init__(self, text: str, variables: VariableValues) -> None:
        self._text, self._variables = text, variables
        self._position = 0
        self._depth = 0
        self._compared = self._read = 0

    def run(self) -> str:
        text, parts, size = self._text, list[str](), 0
        while (found := text.find("$", self._position)) >= 0:
            parts.append(text[self._position : found])
            following = text[found + 1 : found + 2]
            self._position = found + (2 if following in ("$", "{") else 1)
            parts.append(self._read_variable() if following == "{" else "$")
            size += len(parts[-1])
            if size > MAX_OUTPUT:
                raise SubstitutionError(f"the text has more than {MAX_OUTPUT} characters after substitution")
        return "".join((*parts, text[self._position :]))

    def _read_variable(self) -> str:
        """Return the value of the variable whose opening brace was read."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._reject("has more substitutions inside of each other than are supported")
        if self._peek() == "#":
            self._position += 1
            value = str(len(_encode(self._look_up(self._read_name()))))
        else:
            value = self._read_function(self._read_name())
        self._expect("}")
        self._depth -= 1
        return value

    def _read_function(self, name: str) -> str:
        if self._match(_DEFAULT):
            return self._read_default(name)
        if function := self._match(_CASE):
            return _change_case(self._look_up(name), function)
        if function := self._match(_TRIM):
            pattern = self._read_argument("}")
            return self._trim(self._look_up(name), function, pattern)
        if function := self._match(_REPLACE):
            return self._read_replacement(name, function)
        if self._peek() == ":":
            self._position += 1
            return self._read_slice(name)
        if self._peek() != "}":
            self._fail("is not complete")
        return self._look_up(name)

    def _read_default(self, name: str) -> str:
        parts = []
        while self._peek() != "}":
            parts.append(self._read_argument("}"))
        value = self._variables.values.get(name)
        if value is None and (self._variables.incomplete or name in self._variables.unknown):
            raise SubstitutionError(f"${{{name}}} has no value", name)
        return value or "".join(parts)

    def _read_slice(self, name: str) -> str:
        offset, length = self._read_argument(":}"), ""
        bounded = self._peek() == ":"
        if bounded:
            self._match(_COLONS)
            length = self._read_argument("}")
        value = self._look_up(name)
        if not _INTEGER.fullmatch(offset) or (bounded and not _INTEGER.fullmatch(length)):
            return value
        data = _encode(value)
        start = int(offset) if int(offset) >= 0 else max(0, len(data) + int(offset))
        end = start + int(length) if bounded else len(data)
        if end < min(start, len(data)):
            raise self._reject("has a negative length")
        return data[start:end].decode("utf-8", "replace")

    def _read_replacement(self, name: str, function: str) -> str:
        old, new = self._read_argument("/", escapes=True), ""
        self._expect("/")
        self._match(_SLASHES)
        if self._peek() != "}":
            new = self._read_argument("}", escapes=True)
        value = self._look_up(name)
        if function == "//":
            if len(value) + value.count(old) * len(new) > MAX_OUTPUT:
                raise self._reject(f"gives more than {MAX_OUTPUT} characters")
            return value.replace(old, new)
        if function == "/#":
            return new + value.removeprefix(old) if value.startswith(old) else value
        if function == "/%":
            return value.removesuffix(old) + new if value.endswith(old) else value
        return value.replace(old, new, 1)

    def _trim(self, value: str, function: str, pattern: str) -> str:
        """Remove the shortest (`#`, `%`) or longest (`##`, `%%`) part at the start or the end that matches a pattern."""
        if len(value) > MAX_TRIMMED:
            raise self._reject(f"compares more than {MAX_TRIMMED} characters with a pattern")
        at_end = function[0] == "%"
        # Upstream reverses both for a suffix, so that a character class is not valid there.
        subject = value[::-1] if at_end else value
        tokens = parse_glob(pattern[::-1] if at_end else pattern)
        if tokens is None:
            return value
        self._compared += len(subject) + len(pattern) * len(set(subject)) // 8
        if self._compared > MAX_COMPARED:
            raise self._reject(f"compares more than {MAX_COMPARED} characters of one text with patterns")
        lengths = list_matching_lengths(tokens, subject)
        found = next((n for n in lengths if n), 0) if len(function) == 1 else max(lengths, default=0)
        return value[: len(value) - found] if at_end else value[found:]

    def _read_argument(self, end: str, *, escapes: bool = False) -> str:
        """Return an argument up to one of the characters of `end` or to a variable; the value if it starts with a variable."""
        text = self._text
        if text.startswith("${", self._position):
            self._position += 2
            return self._read_variable()
        parts: list[str] = []
        while (character := self._peek()) and character not in end and not text.startswith("${", self._position):
            pair = text[self._position : self._position + 2]
            escaped = escapes and pair in ("$$", "\\/", "\\\\")
            parts.append(pair[1] if escaped else character)
            self._position += 2 if escaped else 1
        if not parts or not self._peek():
            raise self._reject("is not complete")
        return "".join(parts)

    def _look_up(self, name: str) -> str:
        value = self._variables.values.get(name)
        if value is None:
            raise SubstitutionError(f"${{{name}}} has no value", name)
        self._read += len(value)
        if self._read > MAX_READ:
            raise self._reject(f"reads more than {MAX_READ} characters of variables")
        return value

    def _read_name(self) -> str:
        return self._match(_NAME) or self._fail("has no name")

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._position)
        self._position = found.end() if found else self._position
        return found[0] if found else ""

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            self._fail(f"needs {character} here")
        self._position += 1

    def _fail(self, why: str) -> str:
        raise self._reject(why)

    def _reject(self, why: str) -> SubstitutionError:
        start = self._text.rfind("${", 0, max(self._position, 2))
        shown = self._text[max(start, 0) : self._position + 10].partition("\n")[0][:60]
        return SubstitutionError(f"{shown!r} {why}; write $${{ for a literal ${{")


def _change_case(value: str, function: str) -> str:
    changes: dict[str, Callable[[str], str]] = {",": str.lower, "^": str.upper}
    if function in (",,", "^^"):
        return changes[function[0]](value)
    return changes[function](value[:1]) + value[1:] if function in changes else value


def _encode(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")
