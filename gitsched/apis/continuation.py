"""What engines of several APIs check before they continue with changed documents."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.capabilities import DocumentPair, SnapshotChanges
from gitsched.apis.snapshot import Snapshot
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import read_follows
from gitsched.model.document import Key, read_labels


def is_plain(snapshot: Snapshot) -> bool:
    """Return whether each document is valid and defined once, and every workload is a template that its policies decide about."""
    return not (
        snapshot.quarantined
        or snapshot.broken
        or snapshot.duplicates
        or snapshot.duplicate_templates
        or snapshot.fixed
        or snapshot.tenancy is not None
    )


def changes_selection(templates: Mapping[Key, DocumentPair]) -> bool:
    """Return whether policies may select other templates than before: some came or went, or have other labels or another version."""
    return any(
        before is None
        or after is None
        or before.api_version != after.api_version
        or read_labels(before.body) != read_labels(after.body)
        for before, after in templates.values()
    )


def changes_followers(templates: Mapping[Key, DocumentPair]) -> bool:
    """Return whether the annotation of a changed companion lets it follow its targets before or after its change, but not both."""
    companions = (pair for key, pair in templates.items() if key[:2] in COMPANION_KINDS)
    return any(len({one is not None and read_follows(one.body) is True for one in pair}) > 1 for pair in companions)


def keeps_followers(snapshot: Snapshot, changes: SnapshotChanges, *, has_followers: bool) -> bool:
    """Return whether companions follow workloads as before: no changed policy or companion has a say in it, and the first or last companion
    does not decide whether any follows."""
    companions = [pair for key, pair in changes.templates.items() if key[:2] in COMPANION_KINDS]
    pairs = (*changes.api_documents.values(), *companions)
    if any(document is not None and read_follows(document.body) is not None for pair in pairs for document in pair):
        return False
    return has_followers or not (snapshot.config.follow_targets and any(None in pair for pair in companions))
