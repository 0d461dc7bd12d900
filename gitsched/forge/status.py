"""The port to a forge: what there is to say about a commit, and how each forge wants to hear it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

State = Literal["success", "failure"]


class Status(NamedTuple):
    """What became of a source commit. `context` tells apart several who speak about one; `link` is "" where there is nothing to show."""

    commit: str
    state: State
    description: str
    context: str
    link: str = ""


class Post(NamedTuple):
    """A POST request with a JSON body."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, str]


class Forge(Protocol):
    """The whole contract of an adapter."""

    title: str

    def write(self, status: Status, token: str) -> Post:
        """The request that sets a status."""

    def read(self, code: int, message: str, /) -> bool:
        """Whether an answer (HTTP status, and the message in its body) means that the status is set."""


def shorten(text: str, length: int) -> str:
    """The text, cut to what a forge takes."""
    return text if len(text) <= length else text[: length - 1] + "…"
