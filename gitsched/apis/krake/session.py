"""Krake over one commit, as the plan asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.krake import applications, names
from gitsched.apis.krake.arena import Site
from gitsched.apis.krake.constraint_sets import tell_mismatch
from gitsched.apis.krake.decisions import Decided, Decisions
from gitsched.apis.krake.inventory import is_deleted
from gitsched.apis.krake.memory import recall
from gitsched.apis.krake.metrics import NOTHING
from gitsched.apis.krake.names import Ref, directory_of
from gitsched.apis.krake.records import application_record, cluster_record, failing_records, find_owners, magnum_record
from gitsched.apis.krake.reporting import report, report_application
from gitsched.apis.world import Edit, World
from gitsched.model.cluster import ClusterFacts
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key, group_of
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome, Placed
from gitsched.model.scope import is_namespaced

CHOSEN = "best by its constraints and metrics"
"""Why an application is where it is, in words that do not change as long as it stays: they are committed."""


class KrakeSession:
    """See `gitsched.apis.world.Session`."""

    name = "krake"
    wakeup: datetime | None = None  # every deadline is an application's, and stands in its outcome

    def __init__(self, world: World) -> None:
        self.world = world
        self.decisions = Decisions(world)
        self.findings: tuple[Finding, ...] = tuple(report(self.decisions))
        made = (binding.memory.scheduled for _, binding in self.decisions.bindings.values() if binding.action == "bind")
        self.time: datetime | None = max((moment for moment in made if moment and moment > world.at), default=None)

    def renew(self, _world: World, /) -> bool:
        """Applications are in no catalog of templates, so a new session has to decide them."""
        return False

    def own(self) -> Iterable[tuple[Document, Outcome]]:
        return [(decided.app.document, self._outcome(decided)) for decided in self.decisions.applications.values()]

    def clusters(self) -> Mapping[str, ClusterFacts]:
        known = ((key, cluster.site.labels) for key, cluster in self.decisions.clusters.items())
        unread: list[tuple[Key, Mapping[str, str]]] = [(key, {}) for key in sorted(self.decisions.broken)]
        facts = (ClusterFacts(directory_of(key.namespace, key.name), labels) for key, labels in (*known, *unread))
        return {fact.name: fact for fact in facts}

    def documents(self) -> Iterable[tuple[Key, Body]]:
        decisions = self.decisions
        owners = find_owners(self.world.documents)
        for key, (document, binding) in decisions.bindings.items():
            cluster = decisions.clusters.get(key)
            spec = document.body["spec"] if key in decisions.created else None
            body = cluster_record(document, binding, self._seen(cluster.site) if cluster else None, spec)
            if body is not None:
                yield key, body
        for key, (document, binding) in decisions.magnum.items():
            yield key, magnum_record(document, binding, owners)
        yield from failing_records(map(self._seen, decisions.sites), owners)

    def place(self, _template: Document, /) -> Outcome | None:
        return None

    def selects(self, _template: Document, /) -> bool:
        return False

    def keep(self, template: Document, why: str) -> Outcome | None:
        key = template.key
        previous = self.world.previous.get(key)
        if (key.group, key.kind) != names.APPLICATION or previous is None:
            return None
        memory = recall(template, previous, self.world.at, applications.FINAL)
        placed = self._placed(memory.target)
        message = f"{key} keeps its previous placement: {why}"
        return Outcome(
            key=key,
            api=self.name,
            state="stale",
            policy="",
            group="",
            placed=placed,
            replicas=None,
            documents=((key, previous),),
            reason=why,
            time=memory.scheduled or self.world.at,
            findings=(Finding("warning", "stale-decision", message, locate(template), key.resource),),
            before=placed,
            manifests=_manifests(template),
        )

    def candidates(self, _template: Document, /) -> list[Verdict]:
        return []

    def verdicts(self, kind: str, name: str, namespace: str, /) -> list[Verdict] | None:
        wanted = (kind, name, namespace)
        for key, decided in self.decisions.applications.items():
            if (key.kind, key.name, key.namespace) == wanted:
                return judge(decided)
        known = (*self.decisions.bindings, *self.decisions.magnum)
        found = next((key for key in known if (key.kind, key.name, key.namespace) == wanted), None)
        return self.decisions.judge(found) if found else None

    def propose(self, template: Document, cluster: str) -> Edit | None:
        from gitsched.apis.krake.advice import propose  # only the verb explain needs it

        decided = self.decisions.applications.get(template.key)
        return propose(decided, self.world.documents, cluster) if decided is not None else None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.krake.explanation import explain, explain_binding  # only the verb explain needs it

        decided = self.decisions.applications.get(template.key)
        observed = getattr(self.world.observations, "time", None)
        return explain(decided, observed) if decided is not None else explain_binding(self.decisions, template)

    def _outcome(self, decided: Decided) -> Outcome:
        document, step = decided.app.document, decided.steps[-1]
        key, memory = document.key, step.memory
        placed = () if is_deleted(document.body) else self._placed(memory.target)
        gone = memory.target is not None and not placed and not is_deleted(document.body)
        last = decided.step
        return Outcome(
            key=key,
            api=self.name,
            state="pending" if not placed else "stale" if step.action == "hold" else "placed",
            policy="",
            group="",
            placed=placed,
            replicas=None,
            documents=((key, application_record(document, memory)),),
            reason=CHOSEN if placed else step.why or "it is not placed",
            time=last.moment if last.changes else self.world.at,
            wakeup=step.change,
            findings=tuple(report_application(decided, Key(*memory.target) if gone and memory.target else None, bool(placed))),
            before=tuple(Placed(directory_of(ref.namespace, ref.name)) for ref in (decided.before.target,) if ref),
            manifests=_manifests(document),
            cause=_tell_move(decided) if placed else "",
        )

    def _seen(self, site: Site) -> Site:
        """A site as records show it: where placements are held, an outage of a provider is no news of a cluster, and no commit."""
        if self.decisions.hold and site.readings.failed:
            return site._replace(readings=NOTHING, state="ONLINE" if site.standby else site.said)
        return site

    def _placed(self, target: Ref | None) -> tuple[Placed, ...]:
        if target is None or not (Key(*target) in self.decisions.clusters or Key(*target) in self.decisions.broken):
            return ()
        return (Placed(directory_of(target.namespace, target.name)),)


def judge(decided: Decided) -> list[Verdict]:
    """How every cluster fared in the look that counts, and every cloud where one might have been made."""
    app, step, around = decided.app, decided.step, decided.around
    mask, held = step.mask, step.held
    if not mask and not step.memory.awaited:  # a look that ended before the clusters were looked at says nothing of them
        mask, held = around.clusters.matching(app.constraints), around.clusters.index(step.memory.target) if held is None else held
    verdicts = around.clusters.verdicts(app.constraints, held, mask)
    if around.clouds is not None:
        offered = around.clouds.matching(app.constraints)
        verdicts += around.clouds.verdicts(app.constraints, None, offered, around.clouds.preferred(offered))
    return sorted(verdicts)


def _tell_move(decided: Decided) -> str:
    """Why an application left the cluster where it was; "" where it did not."""
    step, arena, former = decided.step, decided.around.clusters, decided.before.target
    if step.action != "bind" or former is None or step.memory.target is None:
        return ""
    if not step.compared:
        return step.why
    if step.held is None:
        return f"{former.name} is not there any more"
    if not step.mask >> step.held & 1:
        site = arena.sites[step.held]
        why = site.why or tell_mismatch(decided.app.constraints, site.labels, site.resources, arena.measures[step.held])
        return f"{former.name} does not fit: {why}"
    chosen = arena.index(step.memory.target)
    scores = [arena.ranking.total(at, step.mask, step.held) for at in (chosen, step.held) if at is not None]
    mine, its = (f"scores {score:.4g}" if score is not None else "has no score" for score in scores)
    return f"{step.memory.target.name} {mine}, {former.name} {its} with its stickiness"


def _manifests(document: Document) -> tuple[tuple[Key, Body], ...]:
    """The Kubernetes objects of an application, each once: of two that are the same object, the last."""
    found: dict[Key, Body] = {}
    for body in applications.objects_of(document):
        group, kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
        metadata = body.get("metadata") or {}
        space = str(metadata.get("namespace") or ("" if is_namespaced(group, kind) is False else "default"))
        found[Key(group, kind, space if is_namespaced(group, kind) is not False else "", str(metadata.get("name")))] = body
    return tuple(found.items())
