r"""Regular expressions: matched with RE2, with the syntax of Go's regexp package.

RE2 and Go differ in details, so each pattern is checked and translated before RE2 compiles it. Go rejects `\C`, group names that
are not ASCII, repetition counts of nine digits and more, and expressions nested more than 1000 deep; RE2 accepts them. Go 1.25 and
newer ignore case, spaces, underscores and hyphens in the names of Unicode classes and have more names; RE2 does not.

Differences that remain: RE2 has the characters of Unicode 15.1, Go 1.26 those of 15.0; unassigned characters are not in `\p{C}`; and a
pattern that needs more than 8 MiB, or has more than 100,000 characters, is rejected. Underscores in names of scripts (`\p{Old_Italic}`)
are accepted, which only Go 1.25 and 1.26 reject.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from gitsched.apis.ocm.cel.overloads import CostTracker
from gitsched.named_tuples import NamedTuple

_MAX_MEMORY: Final = 8 << 20
"""Bytes that RE2 may allocate for a compiled pattern and its caches."""
_CACHE_SIZE: Final = 32
"""Compiled patterns in the cache: with `_MAX_MEMORY`, at most 256 MiB."""
_MAX_PATTERN_LENGTH: Final = 100_000
"""The most characters of a pattern. RE2 ignores log_errors for patterns with more than a million parts and logs to stderr."""
_MAX_HEIGHT: Final = 1000
_MAX_REPEATS: Final = 1000
_REJECTED_SIZE: Final = 600_000
"""Instructions for the cost of a rejected pattern: about the most that fit in `_MAX_MEMORY`."""
_CLASS_INSTRUCTIONS: Final = 1000
"""Instructions charged to compile a Unicode class."""
_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(?:,(0|[1-9][0-9]*)?)?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?[imsU-]*([:)])")
_NAME = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidPattern(Exception):
    """An invalid pattern, with the reason. Not raised outside this package."""


class Pattern(NamedTuple):
    """A compiled pattern, its size in RE2 instructions, and the cost to compile it, in instructions."""

    compiled: Any
    size: int
    compile_cost: int


def search(pattern: str, text: str, charge: CostTracker, count: int = -1) -> list[str]:
    """Return the matches of a pattern as Go's FindAllString does: at most `count`, or all if it is negative.

    The cost is that of Kubernetes, a product of the lengths of text and pattern, or RE2's worst case if that is more. Raises
    InvalidPattern.
    """
    kubernetes_cost = -(-(len(text) + 1) // 10) * -(-len(pattern) // 4)
    charge(kubernetes_cost)
    try:
        compiled, size, compile_cost = compile_pattern(pattern)
    except InvalidPattern:
        charge(_REJECTED_SIZE // 10)
        raise
    data = _encode(text)
    charge(max(0, len(data) * size // 100 + compile_cost // 10 - kubernetes_cost))
    matches: list[str] = []
    at, last = 0, -1
    while at <= len(data) and (count < 0 or len(matches) < count):
        if at:
            charge(1 + (len(data) - at) * size // 1000)
        match = compiled.search(data, at)
        if match is None:
            break
        start, end = match.span()
        # RE2 also matches \B between the bytes of one character. Go does not return an empty match directly after another match.
        if not _is_inside(data, start) and (end > start or start != last):
            matches.append(data[start:end].decode())
        at = last = end
        if start == end:
            at += 1
            while _is_inside(data, at):
                at += 1
    return matches


def _is_inside(data: bytes, offset: int) -> bool:
    """Report whether an offset is inside a character."""
    return offset < len(data) and data[offset] & 0xC0 == 0x80


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern; InvalidPattern if Go's regexp package rejects it, or if it is too large."""
    compiled = _compile(text)
    if isinstance(compiled, str):
        raise InvalidPattern(compiled)
    return compiled


@lru_cache(maxsize=_CACHE_SIZE)
def _compile(text: str) -> Pattern | str:
    """A pattern, or what is wrong with it."""
    import re2  # type: ignore[import-untyped]  # takes 10 ms to load, and most repositories have no patterns

    if len(text) > _MAX_PATTERN_LENGTH:
        return f"longer than {_MAX_PATTERN_LENGTH} characters"
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = _MAX_MEMORY, False, True
    try:
        translated, classes = _Translator(text).read()
        compiled = re2.compile(_encode(translated), options)
    except InvalidPattern as problem:
        return str(problem)
    except re2.error as problem:
        reason = problem.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    finally:
        re2.purge()  # its own cache keeps 128 patterns
    return Pattern(compiled, compiled.programsize, compiled.programsize + _CLASS_INSTRUCTIONS * classes)


def _encode(text: str) -> bytes:
    """Encode as UTF-8 with U+FFFD for surrogates, as Go does."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


class _Level:
    """The height of the syntax tree of a pattern or an open group, computed as Go does to limit nesting.

    A sequence directly in a sequence, or alternatives directly in alternatives, do not add to the height.
    """

    __slots__ = ("branches", "capturing", "height", "highest", "items", "kind", "last")

    def __init__(self, capturing: bool) -> None:
        self.capturing = capturing
        self.branches = self.highest = 0
        self.items = self.height = self.last = 0
        self.kind = ""
        """The type of the last item: sequence, alternatives or ""."""

    def add(self, height: int, kind: str = "") -> None:
        self.items += 2 if kind == "sequence" else 1
        self.last, self.kind = height, kind
        self.height = max(self.height, height - (kind == "sequence"))

    def repeat(self) -> None:
        self.items -= self.kind == "sequence"
        self.last, self.kind = self.last + 1, ""
        self.height = max(self.height, self.last)

    def end_branch(self) -> None:
        flat = self.items == 1 and self.kind == "alternatives"
        self.kind = "sequence" if self.items > 1 else ""
        self.branches += 2 if flat else 1
        self.highest = max(self.highest, self.height - flat + (self.items > 1), 1)
        self.items = self.height = self.last = 0

    def close(self) -> tuple[int, str]:
        self.end_branch()
        if self.branches > 1:
            self.kind = "alternatives"
        height = self.highest + (self.branches > 1) + self.capturing
        if height > _MAX_HEIGHT:
            raise InvalidPattern("expression nests too deeply")
        return height, "" if self.capturing else self.kind


class _Translator:
    """Translates a pattern from Go's syntax to RE2's, and raises InvalidPattern for syntax that RE2 accepts but Go does not.

    Syntax that both reject is copied, so that RE2 reports it.
    """

    __slots__ = ("_at", "_classes", "_levels", "_out", "_text")

    def __init__(self, text: str) -> None:
        self._text, self._at, self._classes = text, 0, 0
        self._out: list[str] = []
        self._levels = [_Level(False)]

    def read(self) -> tuple[str, int]:
        """Return the pattern for RE2, and the number of Unicode classes in it."""
        while self._at < len(self._text):
            self._read_part()
        self._levels[0].close()
        return "".join(self._out), self._classes

    def _copy(self, end: int) -> None:
        self._out.append(self._text[self._at : end])
        self._at = end

    def _read_part(self) -> None:
        character, level = self._text[self._at], self._levels[-1]
        match character:
            case "\\":
                self._read_escape(bracketed=False)
                level.add(1)
            case "[":
                self._read_brackets()
                level.add(1)
            case "(":
                self._open_group()
            case ")":
                self._copy(self._at + 1)
                if len(self._levels) > 1:
                    self._levels[-2].add(*self._levels.pop().close())
            case "|":
                self._copy(self._at + 1)
                level.end_branch()
            case "*" | "+" | "?" | "{":
                self._read_repetition(level)
            case _:
                self._copy(self._at + 1)
                level.add(1)

    def _read_repetition(self, level: _Level) -> None:
        end = self._at + 1
        if self._text[self._at] == "{":
            counted = _COUNTED.match(self._text, self._at)
            if counted is None:
                self._copy(end)
                level.add(1)
                return
            if any(len(number) > 4 or int(number) > _MAX_REPEATS for number in counted.groups() if number):
                raise InvalidPattern(f"invalid repeat count: {counted[0][:20]}")
            end = counted.end()
        self._copy(end + self._text.startswith("?", end))
        level.repeat()

    def _open_group(self) -> None:
        named = _GROUP_NAME.match(self._text, self._at)
        flags = _FLAGS.match(self._text, self._at)
        if named is not None and not _NAME.fullmatch(named[1]):
            raise InvalidPattern(f"invalid named capture: {named[0][:40]}")
        found = named or flags
        self._copy(self._at + 1 if found is None else found.end())
        if flags is None or flags[1] == ":":
            self._levels.append(_Level(flags is None))

    def _read_brackets(self) -> None:
        """Read a bracketed class; a ] at its beginning is a member."""
        text = self._text
        self._copy(self._at + 1 + text.startswith("^", self._at + 1))
        self._copy(self._at + text.startswith("]", self._at))
        while self._at < len(text) and text[self._at] != "]":
            if text[self._at] == "\\":
                self._read_escape(bracketed=True)
                continue
            end = text.find(":]", self._at + 2) if text.startswith("[:", self._at) else -1
            self._copy(self._at + 1 if end < 0 else end + 2)
        self._copy(self._at + 1)

    def _read_escape(self, *, bracketed: bool) -> None:
        text, at = self._text, self._at
        kind = text[at + 1 : at + 2]
        if kind == "C":
            raise InvalidPattern(r"invalid escape sequence: \C")
        end = at + 2
        if kind == "Q" and not bracketed:
            end = text.find(r"\E", at + 2)
            end = len(text) if end < 0 else end + 2
        elif kind in ("x", "p", "P") and text.startswith("{", at + 2):
            end = text.find("}", at + 3) + 1
            if not end:
                raise InvalidPattern(f"missing }} after {text[at : at + 20]}")
        elif kind in ("p", "P"):
            end = at + 3
        if kind not in ("p", "P"):
            self._copy(end)
            return
        self._classes += 1
        braced = text[at + 2 : at + 3] == "{"
        name = text[at + 3 : end - 1] if braced else text[at + 2 : end]
        written = write_class(name.removeprefix("^"), (kind == "p") != name.startswith("^"), bracketed) if name else None
        if written is None:
            raise InvalidPattern(f"invalid character class range: {text[at : min(end, at + 40)]}")
        self._out.append(written)
        self._at = end


_CATEGORIES: Final = "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
_ALIASES: Final = """
Close_Punctuation=Pe Combining_Mark=M Connector_Punctuation=Pc Control=Cc Currency_Symbol=Sc Dash_Punctuation=Pd
Decimal_Number=Nd Enclosing_Mark=Me Final_Punctuation=Pf Format=Cf Initial_Punctuation=Pi Letter=L Letter_Number=Nl
Line_Separator=Zl Lowercase_Letter=Ll Mark=M Math_Symbol=Sm Modifier_Letter=Lm Modifier_Symbol=Sk Nonspacing_Mark=Mn
Number=N Open_Punctuation=Ps Other=C Other_Letter=Lo Other_Number=No Other_Punctuation=Po Other_Symbol=So
Paragraph_Separator=Zp Private_Use=Co Punctuation=P Separator=Z Space_Separator=Zs Spacing_Mark=Mc Surrogate=Cs Symbol=S
Titlecase_Letter=Lt Uppercase_Letter=Lu cntrl=Cc digit=Nd punct=P
"""
_SCRIPTS: Final = """
Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common
Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs
Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul
Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian
Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha
Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi
Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian
Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage
Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le
Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi
Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
_IGNORED: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", " _-")
_CASED, _ASSIGNED = r"\p{Lu}\p{Ll}\p{Lt}", r"\pL\pM\pN\pP\pS\pZ\p{Cc}\p{Cf}\p{Co}\p{Cs}"
_UNIONS: Final[dict[str, tuple[bool, str]]] = {
    "ascii": (True, r"\x00-\x7F"),
    "lc": (True, _CASED),
    "casedletter": (True, _CASED),
    "assigned": (True, _ASSIGNED),
    "cn": (False, _ASSIGNED),
    "unassigned": (False, _ASSIGNED),
}
"""Classes that RE2 has no name for: whether the members are included or excluded, and the members in bracket syntax."""


def _read_names() -> dict[str, str]:
    names = {name.translate(_IGNORED): name for name in (*_SCRIPTS.split(), *_CATEGORIES.split())}
    for pair in _ALIASES.split():
        alias, _, category = pair.partition("=")
        names[alias.translate(_IGNORED)] = category
    return names


_NAMES: Final = _read_names()


def write_class(name: str, positive: bool, bracketed: bool) -> str | None:
    """Return a named class, or its complement, in RE2's syntax, `bracketed` inside `[...]`; None if RE2 cannot express it."""
    name = name.translate(_IGNORED)
    if name in _NAMES:
        return rf"\{'p' if positive else 'P'}{{{_NAMES[name]}}}"
    if name not in _UNIONS:
        return None
    among, members = _UNIONS[name]
    if not bracketed:
        return f"[{'' if among == positive else '^'}{members}]"
    return members if among == positive else None
