"""Why something is where it is, or what a cluster holds: a plan is made as a reconcile would make it, and asked."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.explanation import Candidate, Explanation
from gitsched.model.standing import Standing
from gitsched.plan.advising import advise
from gitsched.plan.catalog import Catalog
from gitsched.plan.ground import Ground, make_ground
from gitsched.plan.scenario import list_sites, name_some
from gitsched.plan.surveying import survey_cluster
from gitsched.reconcile.pointing import Places, point
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Run, Settings

MENTIONED = 5
"""Places named in one message."""
ADVISED = 8
"""Clusters for which somebody looks, unasked, for what would bring a workload there."""


def explain(settings: Settings, kind: str, namespace: str, name: str, why_not: tuple[str, ...] = ()) -> Explanation | Standing:
    """Why a workload is where it is, or for a cluster what it holds.

    The kind's case does not matter, and KIND.GROUP says which of two groups is meant. `why_not` are clusters that somebody asks about.
    Permanent when there is no such workload, or cluster.
    """
    session = Session(settings)
    observed = session.observe()
    step = session.plan(observed, settings.now)
    planned = step.plan
    decided = planned.decided
    own = decided.catalog.settings_by_key
    known = dict.fromkeys((*decided.templates, *own, *decided.catalog.twins, *decided.catalog.broken))
    ground = make_ground(decided, step.config, max(settings.now, planned.time), planned.observations)
    key = _find(known, kind, namespace, name)
    if key is None:
        if kind.lower() != "cluster" or why_not or name not in list_sites(decided.catalog):
            raise Permanent(_tell_missing(known, kind, namespace, name))
        return survey_cluster(ground, name, planned.findings)  # of whatever kind the document is that stands for it
    template = decided.templates.get(key) or own.get(key)
    if template is None:
        findings = tuple(finding for finding in planned.findings if finding.resource == key.resource)
        return Explanation(str(key), policy_reason=_tell_broken(decided.catalog, key), findings=findings)
    found = decided.explain(template)
    if found is None and key in own:
        cluster = next((name for name, sites in list_sites(decided.catalog).items() for _, d, _ in sites if d.key == key), None)
        if cluster is None or why_not:
            raise Permanent(f"{key} is no workload, and nothing is decided about it")
        return survey_cluster(ground, cluster, planned.findings)
    found = found or Explanation(str(key), location=f"{template.origin.path}:{template.origin.line}" if template.origin else "")
    return point(_add_advice(ground, key, found, why_not), session.source.repository)


def explain_all(session: Session, run: Run) -> dict[Key, Explanation]:
    """Why each workload of a whole plan is where it is, for reports that answer questions nobody has asked yet."""
    decided = run.plan.decided
    assert decided is not None, "a whole plan has it"
    found: dict[Key, Explanation] = {}
    places: Places = {}
    own = decided.catalog.settings_by_key
    for key in run.plan.outcomes:
        template = decided.templates.get(key) or own.get(key)
        told = decided.explain(template) if template else None
        if told:
            found[key] = point(told, session.source.repository, places)
    return found


def _find(known: Iterable[Key], kind: str, namespace: str, name: str) -> Key | None:
    return next((key for key in known if _is_called(key, kind, name) and key.namespace in (namespace, "")), None)


def _tell_missing(known: Iterable[Key], kind: str, namespace: str, name: str) -> str:
    """That there is none, and what may have been meant: another namespace, another name, another kind."""
    from difflib import get_close_matches  # rarely needed

    keys = list(known)
    kinds = {key.kind.lower(): key.kind for key in keys}
    alike = [key for key in keys if _is_called(key, kind, key.name)]
    nobody = bool(alike) and not any(key.namespace for key in alike)
    missing = f"there is no {kind} {name if nobody else f'{namespace}/{name}'} in the source"
    elsewhere = sorted({key.namespace for key in alike if key.name == name})[:MENTIONED]
    if elsewhere:
        return f"{missing}; there is one of that name in: {', '.join(elsewhere)}"
    if not alike:
        near = [kinds[word] for word in get_close_matches(kind.lower()[:100], kinds, n=1)]
        return f"{missing}, and nothing else of that kind" + (f"; did you mean {near[0]}?" if near else "")
    near = get_close_matches(name[:253], sorted({key.name for key in alike}), n=MENTIONED)
    return missing + (f"; did you mean {', '.join(near)}?" if near else "")


def _tell_broken(catalog: Catalog, key: Key) -> str:
    if key not in catalog.twins:
        return "its document is broken"
    origins = [document.origin for document in catalog.twins[key] if document.origin]
    places = ", ".join(f"{origin.path}:{origin.line}" for origin in origins[:MENTIONED])
    return f"it stands in several places and none of them is used: {places}"


def _add_advice(ground: Ground, key: Key, found: Explanation, why_not: tuple[str, ...]) -> Explanation:
    """With what would bring it to the clusters that somebody asks about, else to the first that it does not run on."""
    if key not in ground.decided.templates or found.among != "cluster":
        if why_not:
            raise Permanent(f"{key} is no workload that goes to clusters")
        return found
    known = list_sites(ground.decided.catalog)
    unknown = sorted(set(why_not) - known.keys())
    if unknown:
        raise Permanent(f"there is no cluster {unknown[0]!r}; there {name_some(sorted(known))}")
    there = {share.cluster for share in found.result}
    if why_not:
        kept = tuple(candidate for candidate in found.candidates if candidate.verdict.name in why_not)
        result = tuple(share for share in found.result if share.cluster in why_not)
        return found._replace(
            candidates=kept,
            result=result,
            advice=advise(ground, key, why_not),
            selection=(),
            division=(),
            division_rule=(),
            narrowed=True,
        )
    wanted = [name for name in _rank(found.candidates) if name not in there and name in known]
    return found._replace(advice=advise(ground, key, wanted[:ADVISED]), unasked=len(wanted[ADVISED:]))


def _rank(candidates: Iterable[Candidate]) -> list[str]:
    """The clusters that could take it first, then by name."""
    eligible: dict[str, bool] = {}
    for candidate in candidates:
        eligible[candidate.verdict.name] = eligible.get(candidate.verdict.name, False) or candidate.verdict.eligible
    return sorted(eligible, key=lambda name: (not eligible[name], name))


def _is_called(key: Key, kind: str, name: str) -> bool:
    """Whether KIND, KIND.GROUP or, as kubectl writes it, too, KIND.VERSION.GROUP and a name mean this object."""
    word, _, group = kind.lower().partition(".")
    return key.name == name and key.kind.lower() == word and (not group or key.group in (group, group.partition(".")[2]))
