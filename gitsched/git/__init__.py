"""Read and write Git repositories: objects in process with libgit2, fetch and push with the git executable. Both are loaded on
first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gitsched.git.facts import FactsBranch as FactsBranch
    from gitsched.git.facts import FactsNames as FactsNames
    from gitsched.git.facts import FactsRepository as FactsRepository
    from gitsched.git.objects import Signer as Signer
    from gitsched.git.objects import make_signer as make_signer
    from gitsched.git.output import OutputRepository as OutputRepository
    from gitsched.git.output import open_output as open_output
    from gitsched.git.repository import Repository as Repository
    from gitsched.git.source import SourceRepository as SourceRepository
    from gitsched.git.source import open_source as open_source
    from gitsched.git.trees import TreeEntry as TreeEntry
    from gitsched.git.urls import is_url as is_url
    from gitsched.git.urls import redact as redact

_LAZY_MODULES = {
    "FactsBranch": "facts",
    "FactsNames": "facts",
    "FactsRepository": "facts",
    "TreeEntry": "trees",
    "OutputRepository": "output",
    "Repository": "repository",
    "Signer": "objects",
    "SourceRepository": "source",
    "is_url": "urls",
    "make_signer": "objects",
    "open_output": "output",
    "open_source": "source",
    "redact": "urls",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
