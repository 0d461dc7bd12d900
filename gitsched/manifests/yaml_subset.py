"""The subset of YAML that YAML 1.1 and 1.2 read alike, as a regular grammar: which texts a fast parser of YAML 1.2 may read.

The grammar has one alternative for each form of a line. It leaves out whatever parsers disagree about or what needs a finding with its
position: anchors, tags, merge keys, directives, tabs, carriage returns, scalars over several lines other than block scalars, numbers
other than plain decimal ones, booleans of YAML 1.1, and nesting beyond some 20 levels. tests/fuzz/yaml_agreement.py compares the parsers
on real files.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

_LINE_END = r" *(?: #[^\n]*)?\n"
_QUOTED = r"""(?:"(?:[^"\\\n\t]|\\[nt"\\])*"|'(?:[^'\n\t]|'')*')"""
_INTEGER = r"(?:0|-?[1-9][0-9]{0,14})"
_NUMBER = rf"(?:{_INTEGER}|-?(?:0|[1-9][0-9]{{0,5}})\.[0-9]{{0,6}}[1-9])"
_QUANTITY = r"(?:[1-9][0-9]*|0)(?:\.[0-9]+)?(?:%|ms|[mshkKMGT]|[KMGT]i)"
_VERSION = r"[0-9]+(?:\.[0-9]+){2,3}(?:[-/][A-Za-z0-9.-]*[A-Za-z0-9])?"
_LITERAL = rf"(?:{_NUMBER}|{_QUANTITY}|{_VERSION}|{_QUOTED})"
# A colon in a plain scalar is followed by another character of it, and "#" follows another character.
_REST = r"(?::*[!-9;-~\x80-\xff])*(?: +[!\"$-9;-~\x80-\xff](?::*[!-9;-~\x80-\xff])*)*"
# Some parsers of YAML 1.2 ignore underscores, so that _1 is a number: no scalar begins with underscores and a digit.
# A scalar that begins with a digit has a character that no number, date or time has.
_NO_NUMBER = r"[0-9][0-9A-Za-z._-]*[g-nq-su-wyG-NQ-SU-WY@/]"
_PLAIN = rf"(?:[A-Za-z/$\x80-\xff]|_+[A-Za-z/]|--?[A-Za-z]|\.{{1,2}}/|\.[a-hj-mo-z]|{_NO_NUMBER}){_REST}"
_FLOW_PLAIN = r"(?:[A-Za-z/$]|_+[A-Za-z/]|--?[A-Za-z])[A-Za-z0-9_./$=@%+*()~;<>!|-]*"
_FLOW_KEY = r'(?:_*[A-Za-z][A-Za-z0-9_./-]*|"[^"\\\n\t]*")'
_KEY = r"""(?:(?:_*[A-Za-z]|/)[A-Za-z0-9_./-]*|"[^"\\\n\t]*"|'[^'\n\t]*')"""
_MAX_INDENT = 40
_MAX_BLOCK_INDENT = 24


def _make_flow(inner: str) -> str:
    """Return a flow list or mapping in one line; `inner` is the pattern of other values than scalars."""
    value = f"(?:{_FLOW_PLAIN}|{_LITERAL}|{inner})" if inner else f"(?:{_FLOW_PLAIN}|{_LITERAL})"
    pair = f"{_FLOW_KEY}: +{value}"
    return rf"(?:\[ *(?:{value}(?: *, *{value})* *)?\]|\{{ *(?:{pair}(?: *, *{pair})* *)?\}})"


def _make_block_scalars() -> str:
    """Return a literal or folded block scalar with its key, for each indentation of the key and of the text."""
    forms = []
    for indent in range(_MAX_BLOCK_INDENT + 1):
        heads = [f" {{{indent}}}{_KEY}: +", f" {{{indent}}}- +"]
        if indent >= 2:
            heads.append(f" {{{indent - 2}}}- {_KEY}: +")
        line = r"[^ \n\t][^\n\t]*\n"
        depths = range(indent + 1, indent + 5)
        literal = "|".join(rf" {{{depth}}}{line}(?: {{{depth}}}[^\n\t]*\n| *\n)*" for depth in depths)
        folded = "|".join(
            rf" {{{depth}}}{line}(?: {{{depth}}}{line}| *\n)*" for depth in depths
        )  # readers disagree about indented lines
        forms.append(rf"(?:{'|'.join(heads)})(?:\|[-+]?{_LINE_END}(?:{literal})|>-?{_LINE_END}(?:{folded}))")
    return "|".join(forms)


def _make_grammar() -> str:
    value = f"(?:{_PLAIN}|{_LITERAL}|{_make_flow(_make_flow(_make_flow('')))})"
    member = rf"(?:- +){{0,4}}{_KEY}:(?: +{value})?{_LINE_END}"
    entry = rf"(?:- +){{1,4}}{value}{_LINE_END}"
    line = rf" {{0,{_MAX_INDENT}}}(?:{member}|{entry}|#[^\n\t]*\n)"
    return rf"(?:{line}|{_make_block_scalars()}|---{_LINE_END}|{_LINE_END})*"


# Complete scalars that YAML 1.1 or 1.2 may read as a boolean or null. Both read `true`, `false` and `null` alike, but not as keys.
_WORD_START, _WORD_END = r"(?m:(?:^|[:\-\[,{]) *", r"(?: *(?:[,\]}:]| #)| *$))"
_CHANGING_WORDS = (
    rf"{_WORD_START}(?:(?i:y|n|yes|no|on|off)|True|TRUE|False|FALSE|Null|NULL){_WORD_END}|(?m:(?:^|[\-{{,]) *(?:true|false|null):)"
)
_LINE_SEPARATORS: Final = re.compile("[\x85\u2028\u2029\ufeff]")
"""Line breaks of YAML 1.1 that are none in YAML 1.2."""
MAX_LENGTH: Final = 128 * 1024
_MAX_MEMORY = 64 * 1024 * 1024


@cache
def _compile(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped]  # takes 10 ms to load, and a few files are parsed without it

    options = re2.Options()
    options.encoding, options.max_mem, options.never_capture = re2.Options.Encoding.LATIN1, _MAX_MEMORY, True
    return re2.compile(pattern.encode("latin-1"), options)


@cache
def _compile_grammar() -> Any:
    return _compile(_make_grammar())


def is_common_yaml(text: str) -> bool:
    """Return whether YAML 1.1 and 1.2 read the text alike if it is valid: it may still have a syntax error or a duplicate key."""
    if len(text) > MAX_LENGTH or not text.endswith("\n"):  # without it, parsers disagree about the end of a block scalar
        return False
    if "\r" in text or (not text.isascii() and _LINE_SEPARATORS.search(text)):
        return False
    data = text.encode()
    return _compile_grammar().fullmatch(data) is not None and _compile(_CHANGING_WORDS).search(data) is None
