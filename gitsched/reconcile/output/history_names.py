"""Names that somebody asks the history about and that the output does not have, with those that were probably meant."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gitsched.model.commit import Commit
from gitsched.model.history import HistoryFilter
from gitsched.model.similar_names import describe_similar, suggest_names
from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch
from gitsched.render.output_files import CLUSTERS
from gitsched.render.placement_records import read_placement_key, unescape_segment


def describe_unknown_names(output: HistoryBranch, records: CommitRecords, commit: Commit, chosen: HistoryFilter) -> str:
    """Return which name of a filter a commit does not have, with similar ones; "" if it has them."""
    segments = output.repository.list_directory(commit.tree, f"{output.prefix}{CLUSTERS}")
    clusters = [unescape_segment(segment) for segment in segments]
    if chosen.cluster and not any(fnmatchcase(name, chosen.cluster) for name in clusters):
        return f"; there is no cluster {chosen.cluster!r}{suggest_names(chosen.cluster, clusters)}"
    keys = [key for path in records.list_placements(commit) if (key := read_placement_key(path)) is not None]
    if not chosen.workload or any(map(chosen.selects_key, keys)):
        return ""
    qualified = "/" in chosen.workload
    similar = describe_similar(chosen.workload, {f"{key.namespace}/{key.name}" if qualified else key.name for key in keys})
    return f"; there is no workload {chosen.workload!r} now{similar}"
