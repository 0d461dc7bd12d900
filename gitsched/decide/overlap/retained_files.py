"""The files of copies that the output has only for an overlap. A workload that is placed at a path takes precedence over others' copies."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from gitsched.decide.overlap.preserved_copies import annotate_preserved
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Body, Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.scheduling import Outcome, weigh_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import CLUSTER_JSON, cluster_path

FindBlob = Callable[[str], str | None]


class RenderedWorkload(NamedTuple):
    """An outcome with its files: manifests by cluster and relative path, others by path on the output branch."""

    outcome: Outcome
    manifests: Mapping[str, Mapping[str, PlannedFile]]
    others: Mapping[str, PlannedFile]


def add_retained_files(
    copies: Iterable[RetainedCopy],
    workloads: Mapping[Key, RenderedWorkload],
    find_blob: FindBlob,
    manifests: dict[str, dict[str, PlannedFile]],
    files: dict[str, PlannedFile],
    read_manifest: Callable[[str], Body | None] = lambda _: None,
) -> None:
    """Add the files of copies, as the previous output has them, to the `manifests` of clusters and to the other `files`.

    `workloads` are those of the copies that are placed now. Preserved copies get annotations, for which `read_manifest` reads them.
    """
    for copy in copies:
        annotated = annotate_preserved(copy, read_manifest) if copy.preserved else {}
        own = workloads.get(copy.workload)
        replaces = own is not None and _is_larger(copy, own.outcome)
        directory = cluster_path(copy.cluster, "")
        for path in copy.paths:
            relative, blob = path.removeprefix(directory), find_blob(path)
            written = files if relative == path else manifests.setdefault(copy.cluster, {})
            own_files = {} if own is None else own.others if relative == path else own.manifests.get(copy.cluster, {})
            if path in annotated and relative not in written:
                written[relative] = annotated[path]
            elif blob is not None and (relative not in written or (replaces and relative in own_files)):
                written[relative] = ExistingBlob(blob)


def _is_larger(copy: RetainedCopy, outcome: Outcome) -> bool:
    """Return whether a copy has more replicas than the workload gets in its cluster now."""
    target = next((target for target in outcome.targets if target.cluster == copy.cluster), None)
    return target is not None and weigh_replicas(copy.replicas) > weigh_replicas(target.replicas)


def keep_cluster_json(
    copies: Iterable[RetainedCopy], retiring: Container[str], find_blob: FindBlob, files: dict[str, PlannedFile]
) -> None:
    """Keep cluster.json of clusters without a document: generators choose clusters by its labels."""
    for name in {copy.cluster for copy in copies if copy.cluster in retiring}:
        blob = find_blob(cluster_path(name, CLUSTER_JSON))
        if blob is not None:
            files[cluster_path(name, CLUSTER_JSON)] = ExistingBlob(blob)
