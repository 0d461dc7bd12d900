"""Explain the placement of a workload, or describe a cluster, from a plan of the source."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.catalog import Catalog
from gitsched.decide.plan import Plan
from gitsched.git import Repository
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.explanation import ClusterExplanation, ExplainedCandidate, Explanation
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.pipeline import plan_source
from gitsched.reconcile.run import RunSettings, open_context
from gitsched.reconcile.source_locations import RuleLocations, locate_explanation
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.cluster_description import describe_cluster
from gitsched.simulate.counterfactuals import find_counterfactuals
from gitsched.simulate.scenario import format_known_names, index_clusters

MAX_NAMES = 5
"""Places named in one message."""
MAX_COUNTERFACTUALS = 8
"""Clusters for which somebody looks, unasked, for what would bring a workload there."""


def explain_resource(
    settings: RunSettings, kind: str, namespace: str, name: str, why_not: tuple[str, ...] = ()
) -> Explanation | ClusterExplanation:
    """Why a workload is where it is, or for a cluster what it holds.

    The kind's case does not matter, and KIND.GROUP says which of two groups is meant. `why_not` are clusters that somebody asks about.
    Permanent when there is no such workload, or cluster.
    """
    context = open_context(settings)
    step = plan_source(context, fetch(context), settings.now)
    planned = step.plan
    decided = planned.decisions
    own = decided.catalog.api_documents_by_key
    known = dict.fromkeys((*decided.templates, *own, *decided.catalog.duplicate_templates, *decided.catalog.broken))
    ground = make_baseline(decided, step.config, max(settings.now, planned.time), planned.observations)
    key = _find_key(known, kind, namespace, name)
    if key is None:
        if kind.lower() != "cluster" or why_not or name not in index_clusters(decided.catalog):
            raise Permanent(_describe_missing(known, kind, namespace, name))
        return describe_cluster(ground, name, planned.findings)  # of whatever kind the document is that stands for it
    template = decided.templates.get(key) or own.get(key)
    if template is None:
        findings = tuple(finding for finding in planned.findings if finding.resource == key.resource)
        return Explanation(str(key), policy_reason=_describe_quarantine(decided.catalog, key), findings=findings)
    found = decided.explain(template)
    if found is None and key in own:
        cluster = next((name for name, sites in index_clusters(decided.catalog).items() for _, d, _ in sites if d.key == key), None)
        if cluster is None or why_not:
            raise Permanent(f"{key} is no workload, and nothing is decided about it")
        return describe_cluster(ground, cluster, planned.findings)
    found = found or Explanation(str(key), location=f"{template.origin.path}:{template.origin.line}" if template.origin else "")
    return locate_explanation(_add_counterfactuals(ground, key, found, why_not), context.source.repository)


def explain_workloads(repository: Repository, plan: Plan) -> dict[Key, Explanation]:
    """Why each workload of a whole plan is where it is, for reports that answer questions nobody has asked yet."""
    decided = plan.decisions
    found: dict[Key, Explanation] = {}
    places: RuleLocations = {}
    own = decided.catalog.api_documents_by_key
    for key in plan.outcomes:
        template = decided.templates.get(key) or own.get(key)
        told = decided.explain(template) if template else None
        if told:
            found[key] = locate_explanation(told, repository, places)
    return found


def _find_key(known: Iterable[Key], kind: str, namespace: str, name: str) -> Key | None:
    return next((key for key in known if _matches_name(key, kind, name) and key.namespace in (namespace, "")), None)


def _describe_missing(known: Iterable[Key], kind: str, namespace: str, name: str) -> str:
    """That there is none, and what may have been meant: another namespace, another name, another kind."""
    from difflib import get_close_matches  # rarely needed

    keys = list(known)
    kinds = {key.kind.lower(): key.kind for key in keys}
    alike = [key for key in keys if _matches_name(key, kind, key.name)]
    nobody = bool(alike) and not any(key.namespace for key in alike)
    missing = f"there is no {kind} {name if nobody else f'{namespace}/{name}'} in the source"
    elsewhere = sorted({key.namespace for key in alike if key.name == name})[:MAX_NAMES]
    if elsewhere:
        return f"{missing}; there is one of that name in: {', '.join(elsewhere)}"
    if not alike:
        near = [kinds[word] for word in get_close_matches(kind.lower()[:100], kinds, n=1)]
        return f"{missing}, and nothing else of that kind" + (f"; did you mean {near[0]}?" if near else "")
    near = get_close_matches(name[:253], sorted({key.name for key in alike}), n=MAX_NAMES)
    return missing + (f"; did you mean {', '.join(near)}?" if near else "")


def _describe_quarantine(catalog: Catalog, key: Key) -> str:
    if key not in catalog.duplicate_templates:
        return "its document is broken"
    origins = [document.origin for document in catalog.duplicate_templates[key] if document.origin]
    places = ", ".join(f"{origin.path}:{origin.line}" for origin in origins[:MAX_NAMES])
    return f"it is defined more than once and none of them is used: {places}"


def _add_counterfactuals(ground: Baseline, key: Key, found: Explanation, why_not: tuple[str, ...]) -> Explanation:
    """With what would bring it to the clusters that somebody asks about, else to the first that it does not run on."""
    if key not in ground.decisions.templates or found.candidate_kind != "cluster":
        if why_not:
            raise Permanent(f"{key} is no workload that goes to clusters")
        return found
    known = index_clusters(ground.decisions.catalog)
    unknown = sorted(set(why_not) - known.keys())
    if unknown:
        raise Permanent(f"there is no cluster {unknown[0]!r}; there {format_known_names(sorted(known))}")
    there = {share.cluster for share in found.result}
    if why_not:
        kept = tuple(candidate for candidate in found.candidates if candidate.result.name in why_not)
        result = tuple(share for share in found.result if share.cluster in why_not)
        return found._replace(
            candidates=kept,
            result=result,
            counterfactuals=find_counterfactuals(ground, key, why_not),
            selection=(),
            division=(),
            division_rule=(),
            only_some_clusters=True,
        )
    wanted = [name for name in _sort_clusters(found.candidates) if name not in there and name in known]
    return found._replace(
        counterfactuals=find_counterfactuals(ground, key, wanted[:MAX_COUNTERFACTUALS]),
        unexamined=len(wanted[MAX_COUNTERFACTUALS:]),
    )


def _sort_clusters(candidates: Iterable[ExplainedCandidate]) -> list[str]:
    """The clusters that could take it first, then by name."""
    eligible: dict[str, bool] = {}
    for candidate in candidates:
        eligible[candidate.result.name] = eligible.get(candidate.result.name, False) or candidate.result.eligible
    return sorted(eligible, key=lambda name: (not eligible[name], name))


def _matches_name(key: Key, kind: str, name: str) -> bool:
    """Whether KIND, KIND.GROUP or, as kubectl writes it, too, KIND.VERSION.GROUP and a name mean this object."""
    word, _, group = kind.lower().partition(".")
    return key.name == name and key.kind.lower() == word and (not group or key.group in (group, group.partition(".")[2]))
