"""Parse records of an output branch. Most parts of a record, such as its placement and its status, equal those of other records: each part
is parsed once.

A part is a top-level member of a record, or a member of the mapping in one. Where lines do not show the parts, a record is read as a whole.
"""

from __future__ import annotations

import re
from typing import Any

from gitsched.manifests.object_meta import RESOURCE, classify_document
from gitsched.manifests.subset_parser import share_values
from gitsched.manifests.yaml_composer import decode_text, has_byte_order_mark
from gitsched.manifests.yaml_subset import MAX_LENGTH, is_common_yaml
from gitsched.model.document import Body

_MAX_PARTS = 1 << 16
_MEMBER = re.compile(r"\n(?=[^ #\n-])")
_INNER_MEMBER = re.compile(r"\n(?=  [^ #\n-])")
_HEAD = re.compile(r"(metadata|spec|status):\n(?=  [^ #\n-])")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]* *(?:#[^\n]*)?\n")

Part = tuple[str, Any]
"""The name and the value of a member."""


class RecordParser:
    """Parses records, whose bodies share the values of equal parts. No caller changes a value."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._parts: dict[str, Part] = {}

    def parse(self, data: bytes) -> Body | None:
        """Return the object of a record; None for a file that is no single object of the common subset of YAML."""
        text = None if has_byte_order_mark(data) else decode_text(data)
        if not isinstance(text, str) or not 0 < len(text) <= MAX_LENGTH or "\n---" in text or "\n..." in text:
            return None  # markers separate documents
        is_divided = text[0] not in " #\n-" and text[-1] == "\n"
        if ("|" in text or ">" in text) and _BLOCK_SCALAR.search(text):
            is_divided = False
        body = self._parse_parts(text) if is_divided else None
        body = self._load(text) if body is None else body
        return body if classify_document(body) is RESOURCE else None

    def _load(self, text: str) -> Any:
        """Return the value of a text; None if it is not a single document of the subset without a duplicate key."""
        if not is_common_yaml(text):
            return None
        import yaml_rs  # only for what no cache has

        try:
            return share_values(yaml_rs.loads(text, parse_datetime=False), self._texts)
        except ValueError:  # yaml_rs.YAMLDecodeError is one, and so is another number of documents
            return None

    def _parse_parts(self, text: str) -> Body | None:
        """Return the object of a text, of which only the parts that are new are parsed; None if these are not what lines show.

        A part begins at a line whose indentation is that of its mapping. In the subset, no scalar but a block scalar has more than one
        line, so that a part has the same value wherever it is. New parts are parsed together, under the members that have them.
        """
        if len(self._parts) > _MAX_PARTS:
            self._parts.clear()
        known, body = self._parts, Body()
        layout: list[tuple[str, list[str]]] = []
        new: list[str] = []
        for member in _MEMBER.split(text[:-1]):
            if member in known:
                layout.append(("", [member]))
                continue
            head = _HEAD.match(member)
            if head is None:
                layout.append(("", [member]))
                new.append(member)
                continue
            parts = _INNER_MEMBER.split(member[head.end() :])
            layout.append((head[1], parts))
            missing = [part for part in parts if part not in known]
            if missing:
                new += (head[0][:-1], *missing)
            elif len(members := dict(map(known.__getitem__, parts))) == len(parts):
                known[member] = head[1], members
        if new and not self._add_parts(layout, self._load("\n".join((*new, "")))):
            return None
        count = 0
        for name, parts in layout:
            members = dict(map(known.__getitem__, parts))
            count += 1
            if len(members) < len(parts):
                return None
            body |= {name: members} if name else members
        return body if len(body) == count else None  # else a key is there twice

    def _add_parts(self, layout: list[tuple[str, list[str]]], found: Any) -> bool:
        """Keep the values of new parts. Return False unless each part is one member, in the order of the text."""
        if not isinstance(found, dict):
            return False
        rest = iter(found.items())
        for name, parts in layout:
            missing = [part for part in parts if part not in self._parts]
            if not missing:
                continue
            last, value = next(rest, ("", None))
            members = value if name else {last: value}
            if (name and last != name) or not isinstance(members, dict) or len(members) != len(missing):
                return False
            self._parts.update(zip(missing, members.items(), strict=True))
        return next(rest, None) is None
