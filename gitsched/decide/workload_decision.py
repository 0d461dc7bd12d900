"""Decide one workload: the outcome of the API that selects it, adapted to its kind and its variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import Snapshot
from gitsched.model.delivery import DELIVERING_KINDS
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.variants import BUNDLE_KIND

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome

TWO_CLAIMS = "two-claims"


def make_two_claims_finding(document: Document, one: Outcome, other: Outcome) -> Finding:
    """Return the error that two APIs claim a workload. The one that placed it before keeps it."""
    message = (
        f"{document.key} is claimed by {one.policy} ({one.api}) and by {other.policy} ({other.api}): remove it from one of them"
    )
    return Finding("error", TWO_CLAIMS, message, locate_document(document), document.key.resource)


def decide_workload(document: Document, engines: Iterable[PolicyEngine], snapshot: Snapshot) -> Outcome | None:
    """Return the outcome of the API that selects a workload; None when no API does."""
    outcome = _choose_outcome(document, engines)
    return adapt_outcome(document, outcome, snapshot) if outcome is not None else None


def adapt_outcome(document: Document, outcome: Outcome, snapshot: Snapshot) -> Outcome:
    """Return the outcome with what follows from the kind of the document and from its variants."""
    return adapt_variants(document, _adapt_kind(document, outcome), snapshot)


def adapt_variants(document: Document, outcome: Outcome, snapshot: Snapshot) -> Outcome:
    if not snapshot.variants and document.key[:2] != BUNDLE_KIND:
        return outcome
    from gitsched.decide.variants.variant_outcomes import adapt_variants  # few sources have variants

    return adapt_variants(document, outcome, snapshot.variants, snapshot.previous, snapshot.config)


def _adapt_kind(document: Document, outcome: Outcome) -> Outcome:
    """Return the outcome with what follows from the kind of the document: encrypted ones stay unchanged, others may have findings."""
    if "sops" in document.body or document.key.kind == "SealedSecret":
        from gitsched.decide.encrypted import adapt_encrypted  # few documents are encrypted

        outcome = adapt_encrypted(document, outcome)
    if document.key.kind in DELIVERING_KINDS:
        from gitsched.decide.relations.remote_destinations import add_destination_finding  # few documents deliver others

        outcome = add_destination_finding(document, outcome)
    return outcome


def _choose_outcome(document: Document, engines: Iterable[PolicyEngine]) -> Outcome | None:
    """Return the outcome of the API that selects a workload.

    When several do, the one that placed it before wins, else the first, with a finding.
    """
    found: list[Outcome] = []
    for engine in engines:
        outcome = engine.decide(document) if not found or engine.selects(document) else None
        if outcome is not None:
            found.append(outcome)
    if len(found) < 2:
        return found[0] if found else None
    owner = next((outcome for outcome in found if outcome.previous_targets), found[0])
    other = next(outcome for outcome in found if outcome is not owner)
    return owner._replace(findings=(*owner.findings, make_two_claims_finding(document, owner, other)))


def is_unchanged(outcome: Outcome, previous: Mapping[Key, Body]) -> bool:
    """Return whether a decision changed no record, so that deciding again gives the same result. A hold depends on other documents."""
    return outcome.held is None and all(previous.get(key) == body for key, body in outcome.records)
