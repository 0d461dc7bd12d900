"""Commit objects: read leniently, because others wrote them; written so that the same inputs give the same id everywhere."""

from __future__ import annotations

import re
from codecs import lookup
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from gitsched.model.time import EPOCH

_STAMP = re.compile(rb"> (-?\d{1,18})(?: |$)")
_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:[ \t]*(.*)")
_SPECIAL = frozenset(
    {"idna", "punycode", "undefined", "raw-unicode-escape", "raw_unicode_escape", "unicode-escape", "unicode_escape"}
)
_GIT_MADE = ("Signed-off-by: ", "(cherry picked from commit ")


class Commit(NamedTuple):
    """`time` is the committer's, in UTC, to the second; `subject` is the message's first paragraph, on one line.

    `name` and `email` are the committer's; `author` is "Name <address>".
    """

    oid: str
    tree: str
    parents: tuple[str, ...]
    time: datetime
    subject: str
    message: str
    trailers: tuple[tuple[str, str], ...]
    name: str = ""
    email: str = ""
    author: str = ""


def parse_commit(oid: str, data: bytes) -> Commit:
    """The commit in a raw object; ValueError when it has no tree."""
    head, _, body = data.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        field, _, value = line.partition(b" ")
        fields.setdefault(field, []).append(value)
    if b"tree" not in fields:
        raise ValueError("malformed commit object")
    encoding = fields.get(b"encoding", [b"utf-8"])[0]
    message = _decode(body, encoding)
    committer = fields.get(b"committer", [b""])[0]
    name, _, rest = _decode(committer, encoding).partition(" <")
    author, _, _ = _decode(fields.get(b"author", [b""])[0], encoding).rpartition(">")
    return Commit(
        oid,
        fields[b"tree"][0].decode("ascii", "replace"),
        tuple(parent.decode("ascii", "replace") for parent in fields.get(b"parent", [])),
        _moment(committer),
        " ".join(line.strip() for line in message.strip("\n").split("\n\n", 1)[0].splitlines()),
        message,
        parse_trailers(message),
        name.strip(),
        rest.partition(">")[0].strip(),
        f"{author}>" if author else "",
    )


def parse_trailers(message: str) -> tuple[tuple[str, str], ...]:
    """The trailers of a message's last paragraph, by the rule of git-interpret-trailers; the subject is never one."""
    paragraphs = re.split(r"\n[ \t]*\n", message.strip())
    if len(paragraphs) < 2:
        return ()
    found: list[tuple[str, list[str]]] = []
    lines, others, made = paragraphs[-1].splitlines(), 0, False
    for line in lines:
        match = _TRAILER.fullmatch(line)
        made = made or line.startswith(_GIT_MADE)
        if match:
            found.append((match[1], [match[2].strip()]))
        elif line[:1] in (" ", "\t") and found:
            found[-1][1].append(line.strip())
        elif not line.startswith(_GIT_MADE):
            others += 1
    if others and not (made and others <= 3 * len(found)):
        return ()
    return tuple((name, " ".join(texts)) for name, texts in found)


def format_commit(
    tree: str, parents: Sequence[str], message: str, *, name: str, email: str, time: datetime, signature: str | None = None
) -> bytes:
    """The raw commit object. Author and committer are one; the date is `time` in UTC, to the second.

    `signature` is what a signer made of the same object without one.
    """
    if "\0" in message:
        raise ValueError("a commit message cannot hold NUL")
    stamp = f"{clean_name(name)} <{clean_name(email)}> {int(time.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {stamp}", f"committer {stamp}"]
    if signature is not None:
        lines.append("gpgsig " + "\n ".join(signature.strip("\n").split("\n")))
    text = "\n".join(lines) + "\n\n" + message.strip("\n") + "\n"
    return text.encode("utf-8", "backslashreplace")


def clean_name(text: str) -> str:
    """A person's name or address as a commit can hold it: without line breaks, control characters and angle brackets."""
    cleaned = "".join(" " if ch < " " or ch == "\x7f" else ch for ch in text if ch not in "<>").strip(" .,:;\"'\\")
    if not cleaned:
        raise ValueError(f"not a name or address for a commit: {text!r}")
    return cleaned


def _moment(stamp: bytes) -> datetime:
    match = _STAMP.search(stamp)
    seconds = int(match[1]) if match else 0
    if seconds <= 0:
        return EPOCH
    return datetime.fromtimestamp(min(seconds, 253402300799), UTC)


def _decode(body: bytes, encoding: bytes) -> str:
    """The text in the encoding that the commit names; one that is of no text, or takes longer than its length, counts as UTF-8."""
    try:
        name = lookup(encoding.decode("ascii", "replace")).name
        return body.decode("utf-8" if name in _SPECIAL else name, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")
