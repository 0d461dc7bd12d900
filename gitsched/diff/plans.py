"""Compare two plans: moves, manifests of clusters, and a reviewed plan with the current one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.decide.plan_result import Plan, describe_reason, mark_copies, mark_preserved
from gitsched.decide.removals import INDEPENDENT_REASON, INTENDED_REASONS, REMOVED_REASON, UNSELECTED_REASON
from gitsched.decide.variants.built_parts import PartOwners, make_part_move
from gitsched.diff.image_changes import find_image_changes
from gitsched.model.changes import ManifestChange, Move, RecordChange
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_count
from gitsched.model.scheduling import UNKNOWN, AtLeast, RecordTarget
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import CLUSTERS, HUB, object_path
from gitsched.report.lines import abbreviate_oid, format_clusters, format_key, list_limited
from gitsched.report.review import DIGEST_PREFIX, DeliveryChanges, Review, compute_digest
from gitsched.report.summary import REVIEWED_TRAILER, format_targets

if TYPE_CHECKING:
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.model.commit import Commit
    from gitsched.model.scheduling import Outcome


def list_moves_between(base: Plan, head: Plan, documents: Collection[Key]) -> tuple[Move, ...]:
    """Return the moves from `base` to `head` in the order of the outcomes; workloads that only `base` places come last.

    `documents` are the keys of the documents of the later commit.
    """
    moves = []
    owners = PartOwners(head.decisions, head.totals.config)
    for key, outcome in head.outcomes.items():
        base_outcome = base.outcomes.get(key)
        earlier = base_outcome.replicas_by_cluster if base_outcome is not None else {}
        later = outcome.replicas_by_cluster
        if earlier != later and earlier != (later := owners.add_brought(key, earlier, later)):
            moves.append(Move(key, earlier, later, describe_reason(outcome)))
    for key, outcome in base.outcomes.items():
        if key not in head.outcomes and outcome.replicas_by_cluster:
            owner = owners.find(key)
            if owner is not None:
                moves += filter(None, [make_part_move(key, outcome.replicas_by_cluster, owner)])
                continue
            moves.append(make_removal_move(outcome, is_in_source=key in documents))
    return mark_copies(mark_preserved(tuple(moves), head.retained), base.retained)


def make_removal_move(earlier: Outcome, *, is_in_source: bool) -> Move:
    """Return the move of a workload that only the earlier plan places. What no policy placed there came along with other workloads."""
    reason = REMOVED_REASON if not is_in_source else UNSELECTED_REASON if earlier.policy else INDEPENDENT_REASON
    return Move(earlier.key, earlier.replicas_by_cluster, {}, reason, intended=reason in INTENDED_REASONS)


MAX_MANIFESTS = 200
"""The number of manifests with a diff; the others are counted."""
MAX_DIFF_LINES = 120
"""The maximum number of lines of one diff."""
_MAX_LINES = 2_000
_MAX_SIZE = 200_000
_SECRET_PREFIX = "secret-"  # noqa: S105 - how the names of manifests of Secrets begin
_SECRET, _SECRET_DATA = re.compile(rb"""kind["']?\s*:\s*["']?Secret\b"""), re.compile(rb"""\b(?:data|stringData)["']?\s*:""")
_NAMESPACE_PREFIX = "_/namespace-"

ReadBlob = Callable[[str], bytes]


class FileChange(NamedTuple):
    """A changed manifest: its path on the output branch, and its blob ids (hex), None if it does not exist.

    `content` is a digest of the content without the id of the planned commit; "" if the content does not name that.
    """

    path: str
    before: str | None
    after: str | None
    content: str = ""


def list_manifest_changes(changed: Iterable[str], before: BlobLookup, after: BlobLookup) -> tuple[FileChange, ...]:
    """Return the changed paths of the output that are manifests; the lookups return the blob id of a path.

    cluster.json, kustomization.yaml and Namespaces that are added or removed are left out.
    """
    found = []
    for path in changed:
        if path.startswith((f"{CLUSTERS}/", f"{HUB}/")) and path.count("/") > 2:
            entry = FileChange(path, before(path), after(path))
            if not (_relative_path(path).startswith(_NAMESPACE_PREFIX) and None in entry):
                found.append(entry)
    return tuple(found)


def compare_manifests(
    changes: Iterable[FileChange],
    find_former: Callable[[Collection[str]], Mapping[str, str]],
    before: BlobLookup,
    read: ReadBlob,
    find_note: Callable[[str], str],
) -> DeliveryChanges:
    """Return the changed manifests with their diffs; identical changes on several clusters are combined.

    `find_former` returns for relative paths of manifests the first cluster that had one there, if any. A new manifest is compared with that
    of a cluster that loses it, else of another one that had it or gets it, too. `find_note` returns what is to be said about the text at a
    path.
    """
    entries = list(changes)
    groups: dict[tuple[str, str | None, str | None], list[str]] = {}
    for path, old, new, _ in entries:
        groups.setdefault((_relative_path(path), old, new), []).append(_find_cluster(path))
    # Changed manifests are more informative than added and removed ones, so they come first.
    order = sorted(groups, key=lambda group: (group[1] is None or group[2] is None, group[0], group[1] or "", group[2] or ""))
    shown = order[:MAX_MANIFESTS]
    known = _find_copies(
        {path for path, old, _ in shown if old is None}, find_former, (one.path for one in entries if one.after is None)
    )
    rendered = []
    first_variants: dict[str, tuple[str, str]] = {}
    for path, old, new in shown:
        clusters = tuple(sorted(groups[path, old, new]))
        copied = known.get(path, "") if old is None else ""
        source = before(f"{CLUSTERS}/{copied}/{path}") if copied else old
        if source is None and new is not None:  # the variants of a new manifest are compared with the first one
            copied, source = first_variants.setdefault(path, (clusters[0], new))
            copied, source = ("", None) if source == new else (copied, source)
        entry = ManifestChange(path, clusters, old, new, copied=copied)
        entry = _compare_manifest(entry, source, read)
        note = find_note(_find_path(path, entry.clusters[0])) if new is not None else ""
        rendered.append(entry._replace(note="; ".join(filter(None, (entry.note, note)))) if note else entry)
    changed = {(path, old, new): clusters for (path, old, new), clusters in groups.items() if old is not None and new is not None}
    return DeliveryChanges(rendered, max(len(order) - MAX_MANIFESTS, 0), len(entries), find_image_changes(changed, read))


def _find_cluster(path: str) -> str:
    """Return the name of the directory of the cluster that a manifest is for."""
    return path.removeprefix(f"{HUB}/").split("/")[0] if path.startswith(f"{HUB}/") else path.split("/")[1]


def _relative_path(path: str) -> str:
    """Return the path of a manifest relative to the directory of its cluster, or to that of the hub."""
    return path if path.startswith(f"{HUB}/") else path.split("/", 2)[2]


def _find_path(relative: str, directory: str) -> str:
    """Return the path of a manifest on the output branch."""
    return relative if relative.startswith(f"{HUB}/") else f"{CLUSTERS}/{directory}/{relative}"


def _find_copies(
    paths: Collection[str], find_former: Callable[[Collection[str]], Mapping[str, str]], removed: Iterable[str]
) -> dict[str, str]:
    """Return the first cluster that had a manifest at each of the relative paths: one that loses it (`removed` are full paths), if any."""
    found: dict[str, str] = {}
    for path in sorted(path for path in removed if path.startswith(f"{CLUSTERS}/")):
        found.setdefault(_relative_path(path), _find_cluster(path))
    others = [path for path in paths if path not in found]
    return {**found, **(find_former(others) if others else {})}


def _compare_manifest(entry: ManifestChange, source: str | None, read: ReadBlob) -> ManifestChange:
    if entry.after is None or source == entry.after:
        return entry  # a removed manifest and an identical copy have no diff
    if entry.path.rpartition("/")[2].startswith(_SECRET_PREFIX):
        return entry._replace(note="Secret, content not shown")
    data = [b"" if blob is None else read(blob) for blob in (source, entry.after)]
    if any(len(text) > _MAX_SIZE for text in data):
        return entry._replace(note="too large for a diff")
    if any(_SECRET.search(text) and _SECRET_DATA.search(text) for text in data):
        return entry._replace(note="contains a Secret, content not shown")
    old, new = (text.decode("utf-8", "replace").splitlines() for text in data)
    if max(len(old), len(new)) > _MAX_LINES:
        return entry._replace(note="too long for a diff")
    from difflib import unified_diff  # loaded only if there is a diff

    lines = list(unified_diff(old, new, lineterm=""))[2:]
    omitted = len(lines) - MAX_DIFF_LINES
    note = f"{format_count(omitted, 'more line')} not shown" if omitted > 0 else ""
    return entry._replace(diff="\n".join(lines[:MAX_DIFF_LINES]), note=note)


MAX_DIFFERENCES = 10
"""The number of workloads and recorded decisions whose difference from the reviewed plan is listed."""
_DIGEST_PATTERN = re.compile(rf"{DIGEST_PREFIX}[0-9a-f]{{64}}")

ClusterReplicas = Mapping[str, int | None]


ChangeId = tuple[Key, str]
"""A workload and "", or the subject of a recorded decision and its kind of target."""


class ReviewedPlan(NamedTuple):
    """A reviewed plan. `output` is the head of the output branch on which it was planned; `moves` is None if only the digest is known.

    `records` describe changed recorded decisions as text; None if unknown. A `saved` plan is carried out exactly or not at all: `source`
    is the commit of which it was made, and `allowance` how to allow the changes in it that the guard withholds, or "".
    """

    digest: str
    output: str = ""
    moves: Mapping[Key, tuple[ClusterReplicas, ClusterReplicas]] | None = None
    records: Mapping[ChangeId, str] | None = None
    saved: bool = False
    source: str = ""
    allowance: str = ""

    @property
    def has_changes(self) -> bool:
        """Whether it is known to move a workload or to change a recorded decision."""
        return bool(self.moves or self.records)


class ReviewComparison(NamedTuple):
    """`same` is true if the run makes the reviewed changes; `lines` describe the result."""

    same: bool
    lines: tuple[str, ...]


def parse_reviewed_plan(text: str) -> ReviewedPlan:
    """Parse a digest or the output of `gitsched plan -o json`. Raises Permanent for anything else."""
    if _DIGEST_PATTERN.fullmatch(text.strip()):
        return ReviewedPlan(text.strip())
    try:
        data = json.loads(text)
        data = data["plan"] if data.get("kind") == "SavedPlan" else data
        moves = {
            Key(**move["workload"]): (_read_cluster_replicas(move["before"]), _read_cluster_replicas(move["after"]))
            for move in data["moves"]
        }
        records = _format_record_changes(
            RecordChange(
                Key(**change["subject"]), str(change["target"]), _read_targets(change["before"]), _read_targets(change["after"])
            )
            for change in data.get("recordChanges") or ()
        )
        found = ReviewedPlan(data["digest"], data["output"]["before"] or "", moves, records)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Permanent(f"not the digest of a plan ({DIGEST_PREFIX}...) or the output of `gitsched plan -o json`") from error
    if not _DIGEST_PATTERN.fullmatch(str(found.digest)):
        raise Permanent("the plan has no digest")
    return found


def make_reviewed_plan(review: Review) -> ReviewedPlan:
    """Return a plan that was read from a file as the only one that a run may carry out."""
    moves = {move.key: (move.before, move.after) for move in review.moves}
    records = _format_record_changes(review.record_changes)
    allowance = review.withheld.allowance if review.withheld.moves else ""
    return ReviewedPlan(review.comparison.digest, review.before or "", moves, records, True, review.source, allowance)


def find_reviewed_digest(source: Commit) -> ReviewedPlan | None:
    """Return the reviewed plan of a commit's last trailer Gitsched-Reviewed; None without a valid one."""
    digests = [text.strip() for name, text in source.trailers if name.lower() == REVIEWED_TRAILER.lower()]
    return ReviewedPlan(digests[-1]) if digests and _DIGEST_PATTERN.fullmatch(digests[-1]) else None


def compute_plan_digest(moves: tuple[Move, ...], changes: tuple[FileChange, ...], records: tuple[RecordChange, ...]) -> str:
    """Return the digest of a plan, as `report.review.compute_digest` defines it.

    Copies in clusters that a workload leaves do not count: depending on the time, they stay for a while or are removed at once.
    """
    return compute_digest(moves, list_delivered(moves, changes), records)


def list_delivered(moves: Iterable[Move], changes: Iterable[FileChange]) -> dict[str, str | None]:
    """Return the content of the changed manifests that a digest covers, by path; None for removed ones."""
    leaving = list_leaving_paths(moves)
    return {entry.path: entry.content or entry.after for entry in changes if entry.path not in leaving}


def list_leaving_paths(moves: Iterable[Move]) -> set[str]:
    """Return the paths of workloads in clusters that they leave."""
    return {object_path(cluster, move.key) for move in moves for cluster in move.before if cluster not in move.after}


def compare_with_review(
    reviewed: ReviewedPlan, digest: str, output: str | None, moves: tuple[Move, ...], records: tuple[RecordChange, ...]
) -> ReviewComparison:
    """Compare a reviewed plan with the plan of a run on the output branch at `output`."""
    if reviewed.digest == digest:
        return ReviewComparison(True, (f"As reviewed: plan {digest}.",))
    reviewed_base = f" on output commit {abbreviate_oid(reviewed.output)}" if reviewed.output else ""
    base = f" on output commit {abbreviate_oid(output)}" if output else ""
    lines = [f"Not as reviewed: the reviewed plan{reviewed_base} is {reviewed.digest}, the current plan{base} is {digest}."]
    if reviewed.moves is not None and reviewed.records is not None:
        expected = {(key, ""): move for key, move in reviewed.moves.items()}
        found = {(move.key, ""): (move.before, move.after) for move in moves}
        lines += _list_review_differences(
            {identity: _format_move(move) for identity, move in expected.items()} | dict(reviewed.records),
            {identity: _format_move(move) for identity, move in found.items()} | _format_record_changes(records),
        )
    return ReviewComparison(False, tuple(lines))


def _list_review_differences(reviewed: Mapping[ChangeId, str], found: Mapping[ChangeId, str]) -> list[str]:
    different = sorted(identity for identity in reviewed.keys() | found.keys() if reviewed.get(identity) != found.get(identity))
    lines = [
        f"  {format_key(key)}{f', {kind}' if kind else ''}: reviewed: {reviewed.get((key, kind), 'no change')}; "
        f"now: {found.get((key, kind), 'no change')}"
        for key, kind in different
    ]
    return list_limited(lines, MAX_DIFFERENCES, "  and {} more") or [
        "  The moves are the same, but some rendered manifests differ."
    ]


def _format_record_changes(records: Iterable[RecordChange]) -> dict[ChangeId, str]:
    return {
        (change.subject, change.target_kind): f"{format_targets(change.before)} -> {format_targets(change.after)}"
        for change in records
    }


def _format_move(move: tuple[ClusterReplicas, ClusterReplicas]) -> str:
    return f"{format_clusters(move[0])} -> {format_clusters(move[1])}"


def _read_targets(entries: list[dict[str, Any]]) -> tuple[RecordTarget, ...]:
    return tuple(RecordTarget(str(entry["name"]), entry.get("amount"), str(entry.get("group", ""))) for entry in entries)


def _read_cluster_replicas(entries: list[dict[str, Any]]) -> dict[str, int | None]:
    return {str(entry["cluster"]): _read_replicas(entry) for entry in entries}


def _read_replicas(entry: dict[str, Any]) -> int | None:
    replicas = UNKNOWN if entry.get("unknown") else entry["replicas"]
    return AtLeast(replicas) if entry.get("atLeast") else replicas
