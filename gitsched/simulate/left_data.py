"""Find workloads with data that a request would move without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gitsched.apis.stateful_holds import Holds
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.stateful_workloads import leaves_data
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.document import Key
from gitsched.model.scheduling import Outcome
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.continued_plan import NeedsNewEngines


class LeftData(NamedTuple):
    """A workload that leaves clusters, or whose replicas leave them: `data` is what stays there, and `adopted` says why an object is held
    where gitsched took it over, else it is "". `is_held`: it stays until a person releases it."""

    key: Key
    clusters: tuple[str, ...]
    data: tuple[str, ...]
    adopted: str
    is_held: bool

    def __str__(self) -> str:
        what = self.data if self.data else (f"the placement with which it was adopted ({self.adopted})",)
        return f"leaves in {', '.join(self.clusters)}: {'; '.join(what)}"


def find_left_data(baseline: Baseline, after: Mapping[Key, Outcome], keys: Collection[Key]) -> dict[Key, LeftData]:
    """Return those of some workloads that leave data behind, given the outcomes after a request.

    Raise NeedsNewEngines for a claim where not all templates are listed: any of them may mount it.
    """
    return {found.key: found for found in _find(baseline, after, keys)}


def _find(baseline: Baseline, after: Mapping[Key, Outcome], keys: Collection[Key]) -> Iterator[LeftData]:
    decisions, is_held = baseline.decisions, baseline.config.guard.hold_stateful
    holds = Holds(decisions.templates, decisions.variants, adopted=baseline.adopted)
    for key in keys:
        template = decisions.templates.get(key)
        if template is None or key not in after:
            continue
        before, moved = decisions.outcomes[key].replicas_by_cluster, after[key].replicas_by_cluster
        if not leaves_data(before, moved):
            continue
        if is_claim(key) and isinstance(decisions.templates, NamedTemplates):
            raise NeedsNewEngines("any workload may mount a claim")
        data, adopted = holds.list_data(template), holds.find_adopted(template)
        if data or adopted:
            left = sorted(name for name, count in before.items() if (moved.get(name) or 0) < (count or 0) or name not in moved)
            yield LeftData(key, tuple(left), data, adopted, bool(adopted) or is_held)
