"""Find in a text with syntax errors which objects of a kind it defines, as far as lines show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gitsched.manifests.parsed_file import ParsedFile
from gitsched.model.document import Body

_START = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NAME = re.compile(r"""(?:^[ \t]*|[{,][ \t]*)["']?name["']?[ \t]*:[ \t]*["']?([^\s"',{}\[\]#]+)""", re.MULTILINE)
UNKNOWN_NAME = "unknown"
"""The name of an object whose name cannot be read."""


def find_unreadable_objects(text: str, file: ParsedFile, group: str, kind: str) -> Iterator[tuple[int, Body]]:
    """Yield the first line and the identity of each object of a kind that a syntax error hides.

    `file` is what could be parsed of the text. The version of such an object is not known.
    """
    if not file.unreadable:
        return
    has_kind = re.compile(rf"""\bkind["']?[ \t]*:[ \t]*["']?{re.escape(kind)}\b""")
    has_group = re.compile(rf"""\bapiVersion["']?[ \t]*:[ \t]*["']?{re.escape(group)}/""")
    read = sorted(document.line for document in file.documents)
    starts = [0, *(match.start() for match in _START.finditer(text) if match.start()), len(text)]
    line = 1
    for start, end in pairwise(starts):
        part = text[start:end]
        last = line + part.count("\n")
        if (
            not any(line <= at and (at < last or end == len(text)) for at in read)
            and has_kind.search(part)
            and has_group.search(part)
        ):
            name = _NAME.search(part)
            yield line, {"apiVersion": f"{group}/", "kind": kind, "metadata": {"name": name[1] if name else UNKNOWN_NAME}}
        line = last
