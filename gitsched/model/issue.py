"""What checking one document says about it, before anyone knows which file it came from."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.model.document import Body
from gitsched.model.finding import Severity


class Issue(NamedTuple):
    """`pointer` is the place inside the body, as object members and list indices from the root."""

    severity: Severity
    code: str
    message: str
    pointer: tuple[str | int, ...] = ()


class Verdict(NamedTuple):
    """`body` is the document without the fields its schema does not know; the same object when nothing was pruned."""

    body: Body
    issues: tuple[Issue, ...] = ()
