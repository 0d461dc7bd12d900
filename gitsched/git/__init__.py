"""Git as the only state: objects in process with libgit2, the wire with the git executable. Importing this room loads neither."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gitsched.git.commits import Commit as Commit
    from gitsched.git.objects import Repository as Repository
    from gitsched.git.objects import open_repository as open_repository
    from gitsched.git.signing import Signer as Signer
    from gitsched.git.signing import make_signer as make_signer
    from gitsched.git.trees import Entry as Entry

_HOME = {
    "Commit": "commits",
    "Entry": "trees",
    "Repository": "objects",
    "Signer": "signing",
    "make_signer": "signing",
    "open_repository": "objects",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
