"""A Git repository as the control plane of a fleet of clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import gitsched.schedule  # noqa: F401 - imported first, so that the function below replaces the package of the same name

if TYPE_CHECKING:
    from gitsched.decide.python_api import Candidates, Schedule
    from gitsched.manifests.schema import Strictness
    from gitsched.model.document import Body
    from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary
    from gitsched.model.explanation import Explanation, GroupAttempt
    from gitsched.model.finding import Finding, Location
    from gitsched.model.observation import Observations
    from gitsched.model.scheduling import CandidateResult

__version__ = "0.1.0"
__all__ = [
    "CandidateResult",
    "Candidates",
    "Conflict",
    "Explanation",
    "Finding",
    "GitschedError",
    "GroupAttempt",
    "Location",
    "Observations",
    "Permanent",
    "Schedule",
    "Temporary",
    "__version__",
    "observe",
    "schedule",
    "validate",
]
_MODULES = {
    "CandidateResult": "gitsched.model.scheduling",
    "Candidates": "gitsched.decide.python_api",
    "Conflict": "gitsched.model.errors",
    "Explanation": "gitsched.model.explanation",
    "Finding": "gitsched.model.finding",
    "GitschedError": "gitsched.model.errors",
    "GroupAttempt": "gitsched.model.explanation",
    "Location": "gitsched.model.finding",
    "Observations": "gitsched.model.observation",
    "Permanent": "gitsched.model.errors",
    "Schedule": "gitsched.decide.python_api",
    "Temporary": "gitsched.model.errors",
}
"""The modules of the types, which are imported when they are used, so that `import gitsched` stays fast."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_MODULES))


def schedule(
    documents: Iterable[Body],
    *,
    previous: Iterable[Body] = (),
    now: datetime | None = None,
    at: datetime | None = None,
    config: Mapping[str, Any] | None = None,
    observations: Mapping[Any, Any] | None = None,
    upstream_defaults: bool = True,
    strictness: Strictness = "upstream",
) -> Schedule:
    """Schedule plain documents; see `gitsched.decide.python_api.schedule`."""
    from gitsched.decide import python_api  # lazy, so that `import gitsched` stays fast

    return python_api.schedule(
        documents,
        previous=previous,
        now=now,
        at=at,
        config=config,
        observations=observations,
        upstream_defaults=upstream_defaults,
        strictness=strictness,
    )


def validate(documents: Iterable[Body], *, strictness: Strictness = "upstream") -> list[Finding]:
    """Return the findings of schemas and rules for plain documents; see `gitsched.decide.python_api.validate`."""
    from gitsched.decide import python_api

    return python_api.validate(documents, strictness=strictness)


def observe(
    documents: Iterable[Body], timeout: float = 20.0, hosts: Collection[str] | None = None, tokens: Collection[str] = ()
) -> Observations:
    """Query the metrics of plain documents; see `gitsched.metrics.observer.observe`. The only function that accesses the network.

    `hosts` are the hosts that may be queried, as HOST, HOST:PORT or *.DOMAIN; None allows those that the documents name, except link-local
    addresses. `tokens` are the only variables and files that may be read for `tokenFrom`, as env:NAME or file:PATH, with @HOST to send
    them there only. ValueError for a malformed one, TypeError for an argument of the wrong type.
    """
    from gitsched.metrics import observer
    from gitsched.model.allow_list import ANY_HOST, AllowList, parse_host_rule, parse_token_rule
    from gitsched.model.argument_types import check_documents, check_texts

    bodies = check_documents(documents, "documents")
    check_texts(hosts, "hosts")
    check_texts(tokens, "tokens")
    if not isinstance(timeout, int | float):
        raise TypeError(f"`timeout` is {timeout!r}, not a number of seconds")
    allowed = (ANY_HOST,) if hosts is None else tuple(map(parse_host_rule, hosts))
    return observer.observe(bodies, timeout, AllowList(metrics=allowed, tokens=tuple(map(parse_token_rule, tokens))))
