"""The plan of a commit beside another one's, or beside the output branch: everything a review has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.git import Commit
from gitsched.model.change import Move, Stay
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.plan.calm import undisturbed
from gitsched.plan.catalog import Catalog, build_catalog
from gitsched.plan.causes import Ground, find_causes, survey
from gitsched.plan.changes import list_changes
from gitsched.plan.choosing import compare_choices, list_choices
from gitsched.plan.deciding import Decided
from gitsched.plan.holding import Rules, find_stays
from gitsched.plan.registry import RESERVED
from gitsched.reconcile.account import review
from gitsched.reconcile.delivering import describe_differences, digest_of, find_differences
from gitsched.reconcile.observing import Observed
from gitsched.reconcile.pointing import Places, point_causes
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Run, Settings
from gitsched.render.layout import CLUSTERS, segment
from gitsched.report.review import Base, Review

EXPLAINED = 100
"""Moves for which each cluster is asked what speaks against it; for the others, what differs between the commits has to do."""
_CONFLICT = (
    "{head} does not contain {base}, and merging them needs a person, or more history than is here: {head} is planned as it is, so what "
    "{base} has gained since shows reversed."
)
_LAG = "The output branch is not yet what {base} asks for: {moves} more workloads will move, which is no part of this comparison."


class Planned(NamedTuple):
    """What was decided about one commit, and by which settings."""

    run: Run
    decided: Decided
    config: Config


class Compared(NamedTuple):
    """A review, the run of its later commit, which has the plan, and the session of both. `earlier` is the plan of the base, where it is
    a commit, and `later` the one that is compared with it."""

    review: Review
    run: Run
    session: Session
    later: Planned
    earlier: Planned | None = None


def compare(settings: Settings, base: str | None = None) -> Compared:
    """Plan what the settings say, and tell what differs from the plan of `base`; without one, from the output branch.

    Both plans are made over the same output and observations. Where the source does not contain `base`, what merging them gives is
    planned. Objects may be written to the repository, no ref moves.
    """
    session = Session(settings)
    with undisturbed():
        found = _compare_with_output(session) if base is None else _compare_with_base(session, base)
    session.save()
    return found


def _compare_with_output(session: Session) -> Compared:
    observed = session.observe()
    later = _plan(session, observed)
    run, decided = later.run, later.decided
    record, earlier = observed.record, None
    if record is not None and record.source and session.source.fetch_commit(record.source):
        earlier = session.source.repository.commit(record.source)
    ground = survey(_read_catalog(session, earlier) if earlier is not None else decided.catalog, decided.catalog)
    told = _Teller(session, decided, ground, {})
    moves = tuple(map(told.tell, run.plan.moves))
    differences = find_differences(observed.output.repository, observed.prefix, observed.tree, run.tree)
    directories = _list_directories(observed)
    facts, retiring = run.plan.facts.keys(), run.plan.retiring.keys()
    return Compared(
        review(run)._replace(
            name=session.settings.revision or "",
            base=Base(states=_count_findings(record.findings) if record else None, findings=record.findings if record else None),
            moves=moves,
            digest=digest_of(moves, differences, run.choices),
            delivery=describe_differences(observed.output.repository, observed.prefix, observed.tree, differences),
            joined=sorted(name for name in facts - retiring if segment(name) not in directories) if directories else (),
            gone=sorted(retiring - (record.retiring.keys() if record else set())),
            paths=_list_paths(session, earlier, observed.source),
            stays=_list_stays(session, ground, earlier, observed.source, later) if earlier is not None else (),
        ),
        run,
        session,
        later,
    )


def _compare_with_base(session: Session, name: str) -> Compared:
    settings = session.settings
    base = session.find(name)
    observed = session.observe(base)
    head, wanted, notes = observed.source, settings.revision or "HEAD", []
    repository, source = session.source.repository, head
    if head.oid and not repository.descends(head.oid, base.oid):
        session.source.deepen(base.oid, head.oid)
        repository = session.source.repository
    if head.oid and not repository.descends(head.oid, base.oid):
        tree = repository.merge(base.oid, head.oid)
        if tree is None:
            notes.append(_CONFLICT.format(head=wanted, base=name))
        else:
            source = head._replace(tree=tree)
    # The merge is yet to come: what it changes has its time now, however old the commit is, and timers start then.
    observed = observed._replace(source=source._replace(time=settings.now))
    earlier, later = _plan(session, observed._replace(source=base)), _plan(session, observed)
    before, run, decided = earlier.run, later.run, later.decided
    if before.plan.moves:
        notes.append(_LAG.format(base=name, moves=len(before.plan.moves)))
    ground = survey(earlier.decided.catalog, decided.catalog)
    told = _Teller(session, decided, ground, before.plan.outcomes)
    moves = tuple(map(told.tell, list_changes(before.plan, run.plan, decided.templates)))
    differences = find_differences(observed.output.repository, observed.prefix, before.tree, run.tree)
    choices = compare_choices(list_choices(earlier.decided), list_choices(decided))
    clusters = [_list_clusters(plan) for plan in (before, run)]
    return Compared(
        review(run)._replace(
            name="" if settings.worktree else wanted,
            changed=before.tree != run.tree,
            base=Base(base.oid, name, source is not head, before.plan.states, before.plan.findings),
            moves=moves,
            digest=digest_of(moves, differences, choices),
            delivery=describe_differences(observed.output.repository, observed.prefix, before.tree, differences),
            joined=sorted(clusters[1] - clusters[0]),
            gone=sorted(clusters[0] - clusters[1]),
            paths=_list_paths(session, base, source),
            notes=notes,
            stays=_list_stays(session, ground, base, source, later),
            choices=choices,
        ),
        run,
        session,
        later,
        earlier,
    )


class _Teller:
    """Says what makes workloads move. Asking the APIs is dear, so it is done for the first moves only."""

    def __init__(self, session: Session, decided: Decided, ground: Ground, before: Mapping[Key, Outcome]) -> None:
        self._session, self._decided, self._ground, self._before = session, decided, ground, before
        self._places: Places = {}
        self._explained = 0

    def tell(self, move: Move) -> Move:
        """The move with its causes and where they stand."""
        was, now = self._before.get(move.key), self._decided.outcomes.get(move.key)
        causes = find_causes(move, was, now, self._ground, self._explain(move))
        return move._replace(causes=point_causes(causes, self._session.source.repository, self._places))

    def _explain(self, move: Move) -> Explanation | None:
        template: Document | None = self._decided.templates.get(move.key)
        if template is None or not move.before.keys() - move.after.keys() or self._explained >= EXPLAINED:
            return None
        self._explained += 1
        return self._decided.explain(template)


def _plan(session: Session, observed: Observed) -> Planned:
    step = session.plan(observed, session.settings.now)
    assert step.plan.decided is not None, "a whole plan has it"
    return Planned(session.write(observed, step, publish=False), step.plan.decided, step.config)


def _list_stays(session: Session, ground: Ground, earlier: Commit, later: Commit, planned: Planned) -> tuple[Stay, ...]:
    """What memory holds, where anything but workloads differs."""
    if not ground.changed:
        return ()
    plan, now = planned.run.plan, session.settings.now
    snapshots = [session.read_commit(commit) for commit in (earlier, later)]
    rules = [Rules(snapshot.documents, snapshot.config, min(later.time, now), plan.observations) for snapshot in snapshots]
    return find_stays(rules[0], rules[1], now, planned.decided, max(now, plan.time))


def _read_catalog(session: Session, commit: Commit) -> Catalog:
    snapshot = session.read_commit(commit)
    return build_catalog(snapshot.documents, snapshot.config.kinds, RESERVED)


def _list_directories(observed: Observed) -> set[str]:
    """The directories of clusters on the output branch."""
    return set(observed.output.repository.listing(observed.tree, f"{observed.prefix}{CLUSTERS}")) if observed.tree else set()


def _list_clusters(run: Run) -> set[str]:
    return set(run.plan.facts.keys() - run.plan.retiring.keys())


def _list_paths(session: Session, earlier: Commit | None, later: Commit) -> frozenset[str]:
    return frozenset(session.source.repository.changed(earlier.tree if earlier else None, later.tree))


def _count_findings(findings: Iterable[Finding]) -> dict[str, int]:
    """The states of workloads as far as findings tell them."""
    counts = Counter(finding.code for finding in findings)
    return {"pending": counts["unschedulable"], "stale": counts["stale-decision"]}
