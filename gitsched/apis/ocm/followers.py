"""Companions that follow workloads with a Placement: which ones do, and which Placements they get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.companions import CompanionFollowers, has_followers
from gitsched.apis.ocm.workloads import OcmWorkload, read_placement_annotation, read_template, template_record
from gitsched.apis.snapshot import Snapshot
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.document import Body, Document, Key

if TYPE_CHECKING:
    from gitsched.apis.companions import CompanionFollowers


def read_followers(snapshot: Snapshot, placements: Mapping[Key, Document]) -> CompanionFollowers | None:
    """Return which companions follow workloads; None if none does."""
    if not any(key[:2] in COMPANION_KINDS for key in snapshot.templates):
        return None
    wanted = has_followers(snapshot.templates, placements.values(), snapshot.config)
    return CompanionFollowers(snapshot.templates, snapshot.config) if wanted else None


def read_annotated(
    followers: CompanionFollowers | None, template: Document, templates: Mapping[Key, Document], placements: Mapping[Key, Document]
) -> OcmWorkload | None:
    """Read a template with the Placement of its annotation, and with those of the workloads that it follows; None without any."""
    own, followed = read_template(template), list_followed(followers, template, templates, placements)
    if not followed:
        return own
    references = dict.fromkeys((*(placement for placement, _ in own.references), *followed) if own else followed)
    record = own.record if own is not None else template_record(template.key, followed[0].namespace)
    return OcmWorkload(template, record, tuple((placement, {}) for placement in references), None, "")


def list_followed(
    followers: CompanionFollowers | None, template: Document, templates: Mapping[Key, Document], placements: Mapping[Key, Document]
) -> list[Key]:
    """Return the Placements of the workloads that a companion follows, sorted; [] for another object."""
    if followers is None or template.key[:2] not in COMPANION_KINDS:
        return []
    found: set[Key] = set()
    for key in followers.list_workloads(template.key):
        placement = read_placement_annotation(templates[key])
        if placement is not None and followers.follows(template.key, placements.get(placement)):
            found.add(placement)
    return sorted(found)


def find_record(
    followers: CompanionFollowers | None, key: Key, placements: Iterable[Key], previous: Mapping[Key, Body]
) -> Key | None:
    """Return the previous record of a companion whose document is broken, so that its targets are not known."""
    if followers is None or key[:2] not in COMPANION_KINDS:
        return None
    records = (template_record(key, namespace) for namespace in sorted({placement.namespace for placement in placements}))
    return next((record for record in records if record in previous), None)
