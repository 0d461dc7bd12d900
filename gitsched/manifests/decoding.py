"""Bytes → text: UTF-8 only, without control characters, as the API server's own tools take it."""

from __future__ import annotations

import re

from gitsched.manifests.compose import Fault

_ALLOWED = bytes(byte for byte in range(256) if byte >= 0x20 or byte in b"\t\n\r").replace(b"\x7f", b"")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_MARK = b"\xef\xbb\xbf"


def has_mark(data: bytes) -> bool:
    """Whether the bytes begin with UTF-8's byte order mark."""
    return data.startswith(_MARK)


def decode(data: bytes) -> str | Fault:
    """The text without its byte order mark, or why the bytes are none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 3 and 0 in data[:4] and data[:4].count(0) >= 2):
        return Fault("not-utf-8", "the file is UTF-16 or UTF-32: save it as UTF-8", 1, 1)
    plain = data[3:] if has_mark(data) else data
    try:
        text = plain.decode()
    except UnicodeDecodeError as error:
        before = plain[: error.start].decode()
        return _fault_at(before, "not-utf-8", f"the byte 0x{plain[error.start]:02x} is no UTF-8: save the file as UTF-8")
    if plain.translate(None, _ALLOWED) or not plain.isascii():
        found = _FORBIDDEN.search(text)
        if found:
            return _fault_at(
                text[: found.start()], "control-character", f"the control character U+{ord(found[0]):04X} is not allowed in YAML"
            )
    return text


def join_surrogates(text: str) -> str:
    """JSON's escapes of characters beyond 16 bits, which are two, as the single escape that YAML has for them."""
    return _PAIR.sub(_join, text) if "\\ud" in text or "\\uD" in text else text


def _join(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _fault_at(before: str, code: str, message: str) -> Fault:
    return Fault(code, message, before.count("\n") + 1, len(before) - before.rfind("\n"))
