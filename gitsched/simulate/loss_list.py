"""Lists of losses: every cluster, zone, region, pair of clusters, or random ones, each with the clusters that are gone."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gitsched.apis.topology import CLUSTER
from gitsched.model.document import read_labels
from gitsched.model.errors import Permanent
from gitsched.model.losses import MANY_LOSSES, PAIRS, RANDOM, CommonCause, JointLoss, LossRequest
from gitsched.model.similar_names import suggest_names
from gitsched.model.simulation import FailureDomain
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.failure_domains import ClusterIndex, DomainIndex

MAX_LOSSES = 2_000_000
"""The number of losses of one list: more would not end within a day."""
_RANGE = 1 << 64


class LossList(NamedTuple):
    """Losses in their order, and by the clusters that are gone: equal ones are decided once. Samples in which nothing is lost are in
    neither."""

    losses: Sequence[JointLoss]
    groups: Sequence[Sequence[int]]


def list_losses(index: DomainIndex, request: LossRequest) -> LossList:
    """Return the losses that a request asks for. Raise Permanent if there are too many."""
    losses = list(_list_losses(index, request))
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, loss in enumerate(losses):
        groups.setdefault(loss.lost, []).append(number)
    return LossList(losses, list(groups.values()))


def _list_losses(index: DomainIndex, request: LossRequest) -> Iterator[JointLoss]:
    names = index.list_names(CLUSTER if request.kind in MANY_LOSSES else request.kind)
    if request.kind == PAIRS:
        count = len(names) * (len(names) - 1) // 2
        if count > MAX_LOSSES:
            raise Permanent(
                f"{len(names):,} clusters are {count:,} pairs, of at most {MAX_LOSSES:,}; use --sweep random --samples N"
            )
        domains = [FailureDomain("cluster", name) for name in names]
        for pair in combinations(domains, 2):
            yield JointLoss(pair, (pair[0].name, pair[1].name))
    elif request.kind == RANDOM:
        yield from _list_samples(names, index, request)
    else:
        for name in names:
            domain = FailureDomain(request.kind, name)
            yield JointLoss((domain,), index.find_lost((domain,)).names)


def _list_samples(names: Sequence[str], index: DomainIndex, request: LossRequest) -> Iterator[JointLoss]:
    """Yield the different sets of clusters that are gone in samples, in the order of their first sample. A sample depends on its number and
    the seed alone."""
    causes = list(_list_causes(names, index, request.causes))
    counts: dict[tuple[str, ...], int] = {}
    for number in range(request.samples):
        seed = f"{request.seed}/{number}".encode()
        lost = _draw_causes(seed, causes, index) if request.causes else _draw_clusters(seed, names, request.size)
        if lost:
            counts[lost] = counts.get(lost, 0) + 1
    for lost, samples in counts.items():
        yield JointLoss(tuple(FailureDomain("cluster", name) for name in lost), lost, samples)


def _draw_clusters(seed: bytes, names: Sequence[str], size: int) -> tuple[str, ...]:
    """Return so many different clusters, at random; all, if there are not more."""
    remaining, chosen = list(names), []
    for number in _draw(seed, min(size, len(remaining))):
        chosen.append(remaining.pop(number % len(remaining)))
    return tuple(sorted(chosen))


def _draw_causes(seed: bytes, causes: Sequence[_Cause], index: DomainIndex) -> tuple[str, ...]:
    """Return the clusters that are gone: each cause is in effect with its probability, and independent of the others."""
    effective = [cause for number, cause in zip(_draw(seed, len(causes)), causes, strict=True) if number < cause.limit]
    if not effective:
        return ()
    lost = index.find_lost([cause.domain for cause in effective if cause.domain is not None]).names
    return tuple(sorted({*lost, *(name for cause in effective for name in cause.clusters)}))


def _draw(seed: bytes, count: int) -> tuple[int, ...]:
    """Return so many random numbers below 2**64 that depend on the seed alone."""
    return struct.unpack(f">{count}Q", hashlib.shake_256(seed).digest(8 * count))


class _Cause(NamedTuple):
    """A failure domain, or clusters with the same value of a label, that fail together in `limit` of 2**64 samples."""

    domain: FailureDomain | None
    clusters: tuple[str, ...]
    limit: int


def _list_causes(names: Sequence[str], index: DomainIndex, causes: Sequence[CommonCause]) -> Iterator[_Cause]:
    """Yield what can fail. Raise Permanent for rates that concern no cluster."""
    for number, cause in enumerate(causes, 1):
        share, what = cause.unavailability, f"entry {number} of the failure rates"
        limit = share.numerator * _RANGE // share.denominator
        unknown = sorted({*cause.names} - {*names})
        if unknown:
            raise Permanent(f"{what}: there is no cluster {unknown[0]!r}{suggest_names(unknown[0], names)}")
        selected = [name for name in names if _selects(cause, index.clusters, name)]
        found = [_Cause(domain, clusters, limit) for domain, clusters in _list_members(cause, selected, index.clusters)]
        if not found:
            raise Permanent(
                f"{what} concerns no cluster: none has such a {'label' if cause.label or selected == [] else cause.each}"
            )
        yield from found


def _list_members(
    cause: CommonCause, names: Sequence[str], clusters: ClusterIndex
) -> Iterator[tuple[FailureDomain | None, tuple[str, ...]]]:
    """Yield the failure domains, or the clusters, that fail together."""
    if cause.each == "cluster":
        yield from ((None, (name,)) for name in names)
    elif cause.label:
        values: dict[str, list[str]] = {}
        for name in names:
            value = _read_labels(clusters, name).get(cause.label)
            if value is not None:
                values.setdefault(value, []).append(name)
        yield from ((None, tuple(members)) for _, members in sorted(values.items()))
    else:
        locations = (location for name in names for _, _, location in clusters[name])
        found = {FailureDomain(cause.each, value) for location in locations for value in location.domains(cause.each)}
        yield from ((domain, ()) for domain in sorted(found))


def _selects(cause: CommonCause, clusters: ClusterIndex, name: str) -> bool:
    if cause.names and name not in cause.names:
        return False
    labels = _read_labels(clusters, name) if cause.match_labels else {}
    return all(labels.get(key) == value for key, value in cause.match_labels)


def _read_labels(clusters: ClusterIndex, name: str) -> Mapping[str, str]:
    """Return the labels of a cluster, in whatever API it has them."""
    return {key: value for _, document, _ in clusters[name] for key, value in read_labels(document.body).items()}
