"""Which changes of gitsched.yaml leave the decisions of the last plan in force: another text, and settings that concern few things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import GROUP, KIND, parse_config
from gitsched.decide.incremental.changed_documents import ChangedSettings, FileDocuments, identify_documents
from gitsched.model.document import parse_api_group
from gitsched.model.errors import NeedsCompletePlan

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.model.document import Document
    from gitsched.reconcile.cache.caches import SourceFile


def read_changed_settings(before: SourceFile, after: SourceFile, totals: Totals) -> ChangedSettings:
    """Return the settings after a change. Raise NeedsCompletePlan if only a complete plan can tell what it concerns, or if something is
    wrong with a file."""
    old_document, new_document = _find_document(before, totals), _find_document(after, totals)
    if old_document is None or new_document is None:
        raise NeedsCompletePlan("something is wrong with the settings")
    old, new = (parse_config(document.body.get("spec") or {}) for document in (old_document, new_document))
    if old == new:
        return ChangedSettings(totals.config, old_document, new_document)
    changed = {name for name in old._fields if getattr(old, name) != getattr(new, name)}
    if not changed <= {"assumed", "guard", "kinds", "output", "reserve"} or totals.held:
        raise NeedsCompletePlan("the settings may concern all workloads")
    if new.guard.hold_stateful != old.guard.hold_stateful:
        raise NeedsCompletePlan("guard.holdStateful changes")
    if "kinds" in changed and not _keeps_scopes(old, new, totals):
        raise NeedsCompletePlan("the scope of a kind changes")
    if "output" in changed and not _keeps_output(old, new, totals):
        raise NeedsCompletePlan("settings of the output branch change")
    config = totals.config._replace(**{name: getattr(new, name) for name in changed})
    return ChangedSettings(config, old_document, new_document)


def _find_document(file: SourceFile, totals: Totals) -> Document | None:
    """Return the only document of a file if it is a valid Config about which there is no finding."""
    found = FileDocuments()
    if file.findings or not file.independent or not identify_documents(file.documents, totals.source.kind_scopes, found):
        return None
    documents = [*found.templates.values(), *found.api.values()]
    return documents[0] if [one.key[:2] for one in documents] == [(GROUP, KIND)] else None


def _keeps_output(old: Config, new: Config, totals: Totals) -> bool:
    """Return whether only the subject of commits changed, or how long copies and directories stay, of which there are none."""
    kept = old.output._replace(commit_subject=new.output.commit_subject)
    if not totals.retiring and not totals.retained:
        kept = kept._replace(overlap=new.output.overlap, retire_after=new.output.retire_after)
    return kept == new.output


def _keeps_scopes(old: Config, new: Config, totals: Totals) -> bool:
    """Return whether all objects keep their scope: changed kinds have none, or get the scope that they have without a setting."""
    if totals.owners or totals.source.with_variants:
        return False
    sides = [{(parse_api_group(kind.api_version), kind.kind): kind.namespaced for kind in config.kinds} for config in (old, new)]
    changed = {kind for kind in {**sides[0], **sides[1]} if sides[0].get(kind) != sides[1].get(kind)}
    return all(
        kind not in totals.source.kind_scopes
        or (totals.source.kind_scopes[kind] == sides[1].get(kind) and kind not in totals.source.guessed_kinds)
        for kind in changed
    )
