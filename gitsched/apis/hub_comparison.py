"""What a policy API contributes when its decisions are compared with those of a running hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gitsched.model.document import Body, Key
from gitsched.model.hub_comparison import DifferenceCause, HubChange, HubDecision, HubProgress
from gitsched.named_tuples import NamedTuple

PENDING: Final = "it is not yet scheduled by the hub"
"""How the reason begins why a hub has not decided with what the second dump has."""


class HubObjectParts(NamedTuple):
    """An object of a hub as what decisions are made from, and as what the hub has decided; None without such a part."""

    document: Body | None
    record: Body | None


class TriedSetting(NamedTuple):
    """A value of a setting of the API in gitsched.yaml that stands for a flag of the hub.

    `name` may lead into a section, as in featureGates.WorkloadAffinity. `text` says what it means if gitsched decides as the hub with the
    value.
    """

    name: str
    value: Any
    text: str


class HubComparison(NamedTuple):
    """How the decisions of a hub of the API are compared with those of gitsched.

    `split` divides an object of one of the API's groups, `reduce_record` returns what a run continues from, `read_decisions` the decisions
    of records, and `list_templates` objects without content that records show to be there: nobody has to dump Secrets.

    Given a hub's decision and gitsched's, of which one may be missing: `find_progress` returns why they may differ for now,
    `describe_history` why the hub may have decided in between ("": no such sign), and `list_causes` causes that the dumps show.

    `facts` are the kinds whose documents are facts about clusters. `defaults` are the settings of the API that decide as a hub without
    flags, and `settings` those that are tried.
    """

    split: Callable[[Body], HubObjectParts]
    reduce_record: Callable[[Body], Body]
    read_decisions: Callable[[Mapping[Key, Body]], Iterable[HubDecision]]
    find_progress: Callable[[HubChange, HubDecision | None, HubDecision | None], HubProgress | None]
    describe_history: Callable[[HubChange, HubDecision, HubDecision | None], str]
    list_causes: Callable[[HubChange, HubDecision | None, HubDecision | None], Iterable[DifferenceCause]]
    list_templates: Callable[[Mapping[Key, Body]], Iterable[Body]]
    facts: frozenset[tuple[str, str]]
    defaults: Mapping[str, Any] = {}
    settings: tuple[TriedSetting, ...] = ()
