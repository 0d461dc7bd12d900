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
    from gitsched.git.store import Output as Output
    from gitsched.git.store import Source as Source
    from gitsched.git.store import open_output as open_output
    from gitsched.git.store import open_source as open_source
    from gitsched.git.trees import Entry as Entry
    from gitsched.git.urls import is_url as is_url
    from gitsched.git.urls import redact as redact

_HOME = {
    "Commit": "commits",
    "Entry": "trees",
    "Output": "store",
    "Repository": "objects",
    "Signer": "signing",
    "Source": "store",
    "is_url": "urls",
    "make_signer": "signing",
    "open_output": "store",
    "open_repository": "objects",
    "open_source": "store",
    "redact": "urls",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
