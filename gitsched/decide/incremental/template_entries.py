"""Make the entries of a template index: what selectors read of each template, and where its workload goes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from gitsched.decide.registry import reserved_groups
from gitsched.model.document import read_annotations, read_labels
from gitsched.model.template_index import PlacementSummary, TemplateEntry, summarize_placement

if TYPE_CHECKING:
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex


def make_template_index(templates: Mapping[Key, Document], outcomes: Mapping[Key, Outcome]) -> dict[Key, TemplateEntry]:
    """Return the entry of every template. Equal summaries of placements are one object."""
    shared: dict[PlacementSummary, PlacementSummary] = {}
    entries = {}
    for key, template in templates.items():
        entry = make_template_entry(template, outcomes.get(key))
        if entry.placement is not None:
            entry = entry._replace(placement=shared.setdefault(entry.placement, entry.placement))
        entries[key] = entry
    return entries


def update_template_index(known: TemplateIndex, changed: Mapping[Key, TemplateEntry | None]) -> TemplateIndex:
    """Return an index with changed entries, None for a template that is gone."""
    if not changed:
        return known
    kept = {key: entry for key, entry in known.items() if key not in changed}
    return kept | {key: entry for key, entry in changed.items() if entry is not None}


def make_template_entry(template: Document, outcome: Outcome | None) -> TemplateEntry:
    """Return the entry of a template; `outcome` is None if no API decides it."""
    return TemplateEntry(
        template.api_version,
        read_labels(template.body),
        {name: value for name, value in read_annotations(template.body).items() if _is_of_policy_api(name)},
        template.origin.path if template.origin else "",
        summarize_placement(outcome) if outcome is not None else None,
    )


def _is_of_policy_api(annotation: str) -> bool:
    """Return whether the prefix of an annotation is in the domain of a policy API, such as karmada.io."""
    prefix, slash, _ = annotation.rpartition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in _list_domains())


@cache
def _list_domains() -> tuple[str, ...]:
    return tuple(sorted({".".join(group.split(".")[-2:]) for group in reserved_groups if "." in group}))
