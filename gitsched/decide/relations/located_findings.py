"""Findings about relations, with the objects that they are about and at whose documents they are located."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.relations.missing_objects import LackingObject
    from gitsched.model.changes import WithheldChanges
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Finding, Location
    from gitsched.query.canonical import Key as QueryKey

MAX_FINDINGS = 200
"""Missing objects, and companions that do not go where their targets go, that have a finding each; one more finding counts the others."""


class LocatedFinding(NamedTuple):
    """A finding, the object at whose document it is located, what it is about (its code and a key of the database), and the objects whose
    documents and policies it depends on."""

    key: Key | None
    finding: Finding
    about: tuple[str, ...] = ()
    concerned: tuple[Key, ...] = ()


SEPARATED_CODE = "companion-separated"


def mark_withheld(findings: Iterable[LocatedFinding], withheld: WithheldChanges) -> tuple[LocatedFinding, ...]:
    """Return the findings of a plan that has the `withheld` moves: what separates companions from their targets says whether it needs such
    a move."""
    moving = {move.key for move in withheld.moves}
    return tuple(
        one._replace(finding=one.finding._replace(message=f"with the withheld changes, {one.finding.message}"))
        if one.finding.code == SEPARATED_CODE and not moving.isdisjoint(one.concerned)
        else one
        for one in findings
    )


class FindingSources(NamedTuple):
    """What findings need besides the database: the location of an object's document, None if it has none; the template of an object;
    the settings; what a policy would have to say to deliver an object together with what refers to it; the change, for an API, that makes
    the policy of a workload select companions of it; and whether an API schedules workloads again on request."""

    locate: Callable[[Key], Location | None]
    find_template: Callable[[Key], Document | None]
    config: Config
    list_delivery_options: Callable[[LackingObject], list[str]]
    describe_selection: Callable[[str, Key, list[Key]], str]
    reschedules: Callable[[str], bool]


class KnownFindings:
    """The findings of the last plan that the next one may use again, as long as nothing that they say has changed."""

    def __init__(
        self,
        findings: Iterable[LocatedFinding] = (),
        changed: Mapping[str, Collection[QueryKey]] | None = None,
        documents: Collection[Key] = (),
    ) -> None:
        """`changed` are the results of queries that have changed; `documents` those that were decided again."""
        self._findings = {one.about: one for one in findings if one.about}
        self._changed, self._documents = changed or {}, documents

    def find(self, about: QueryKey, results: Iterable[tuple[str, QueryKey]]) -> LocatedFinding | None:
        """Return the finding about something, if neither the `results` of queries nor the documents that it depends on have changed."""
        known = self._findings.get(about)
        if known is None or any(key in self._changed.get(query, ()) for query, key in results):
            return None
        return None if any(key in self._documents for key in known.concerned) else known
