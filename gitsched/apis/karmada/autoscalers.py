"""Autoscalers (HorizontalPodAutoscaler, KEDA's ScaledObject) and the workloads whose replicas they set.

A manifest of such a workload keeps the replicas of its source: a number in Git would undo what the autoscaler of the cluster has set. Its
binding has the divided replicas, as in Karmada. Karmada keeps the replicas of the cluster with the label of RETAIN_REPLICAS, which its
controllers add to the targets of a propagated HorizontalPodAutoscaler (pkg/controllers/hpascaletargetmarker,
pkg/resourceinterpreter/default/native/retain.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.replicas import AUTOSCALER_KINDS, read_scale_limits, read_scale_target
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key, get_field, read_annotations, read_labels
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Assignment, Outcome, TargetCluster
from gitsched.render.output_files import set_counts
from gitsched.schedule.dispenser import dispense

RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Label of a workload: `true` keeps the replicas that its cluster has; any other value divides them although an autoscaler exists."""
LIMITS_ANNOTATION: Final = "gitsched.io/autoscaler-limits"
"""Annotation of an autoscaler that takes precedence over the setting `karmada.autoscalerLimits`: `keep` or `divide`."""

Edits = tuple[tuple[str, int], ...]
Decide = Callable[[Document], Outcome | None]
_DIVISION: Final = ("spec", "placement", "replicaScheduling", "replicaSchedulingType")


class AutoscalerIndex:
    """The autoscalers of one commit by their targets.

    `revision` counts the autoscalers that have changed their target.
    """

    __slots__ = ("_autoscalers", "_targets", "divides_limits", "revision")

    def __init__(self, templates: Iterable[Document], divides_limits: bool) -> None:
        self.revision, self.divides_limits = 0, divides_limits
        self._targets: dict[Key, Key] = {}
        self._autoscalers: dict[Key, tuple[Key, ...]] = {}
        for template in templates:
            self._set_target(template.key, read_target(template))

    @property
    def is_empty(self) -> bool:
        """Whether no object scales anything."""
        return not self._targets

    def retains_replicas(self, template: Document) -> bool:
        """Return whether the manifests of a workload keep the replicas of its source."""
        label = read_labels(template.body).get(RETAIN_REPLICAS)
        return label == "true" if label is not None else template.key in self._autoscalers

    def list_autoscalers(self, target: Key) -> tuple[Key, ...]:
        """Return the autoscalers of a workload, sorted."""
        return self._autoscalers.get(target, ())

    def list_related(self) -> Iterator[Key]:
        """Yield all autoscalers and their targets, also those that do not exist."""
        yield from self._targets
        yield from self._autoscalers

    def has_divided_limits(self, autoscaler: Document) -> bool:
        """Return whether the settings, or the annotation of an autoscaler, ask to divide its limits."""
        annotation = read_annotations(autoscaler.body).get(LIMITS_ANNOTATION)
        return annotation == "divide" if annotation in ("keep", "divide") else self.divides_limits

    def divide_limits(self, template: Document, outcome: Outcome, templates: Mapping[Key, Document], decide: Decide) -> Outcome:
        """Return the outcome of an autoscaler with its limits in each cluster, if these are divided like the replicas of its target."""
        key = self._targets.get(template.key)
        target = templates.get(key) if key is not None and self.has_divided_limits(template) else None
        scaled = decide(target) if target is not None else None
        if scaled is None or not scaled.records or get_field(scaled.records[0][1], *_DIVISION) != "Divided":
            return outcome
        ends = [end for end in (outcome.wakeup, scaled.wakeup) if end is not None]
        return outcome._replace(
            targets=_set_limits(outcome.targets, divide_limits(template, scaled), template),
            time=max(outcome.time, scaled.time),
            wakeup=min(ends, default=None),
        )

    def add_minima(self, template: Document, outcome: Outcome, templates: Mapping[Key, Document], decide: Decide) -> Outcome:
        """Return the outcome of a workload with the minima of its autoscalers in the clusters that get these."""
        minima: dict[str, int] = {}
        for key in self._autoscalers.get(template.key, ()):
            autoscaler = templates.get(key)
            scaling = decide(autoscaler) if autoscaler is not None else None
            if autoscaler is None or scaling is None:
                continue
            for target in scaling.targets:
                low, _ = read_scale_limits(key[:2], target.body or set_counts(autoscaler.body, target.edits))
                if low is not None and not target.evicting:
                    minima[target.cluster] = max(low, minima.get(target.cluster, 0))
        if not minima:
            return outcome
        return outcome._replace(targets=tuple(target._replace(minimum=minima.get(target.cluster)) for target in outcome.targets))

    def decision_inputs(self, key: Key, snapshot: Snapshot) -> tuple[object, ...]:
        """Return the target of an autoscaler with its binding, or the autoscalers of a workload."""
        target = self._targets.get(key)
        scaled = (snapshot.templates.get(target), snapshot.previous.get(binding_key(target))) if target is not None else ()
        autoscalers = self._autoscalers.get(key, ())
        scaling = (snapshot.previous.get(binding_key(autoscaler)) for autoscaler in autoscalers)
        return (*scaled, *map(snapshot.templates.get, autoscalers), *scaling)

    def affected_by(self, dirty: Iterable[Key], templates: Mapping[Key, Document]) -> frozenset[Key]:
        """Read changed autoscalers again. Return their targets, before and now, and the autoscalers of changed workloads."""
        found: set[Key] = set()
        for key in dirty:
            found.update(self._autoscalers.get(key, ()))
            before = self._targets.get(key)
            template = templates.get(key) if key[:2] in AUTOSCALER_KINDS else None  # reading one from a file takes its time
            after = read_target(template) if template is not None else None
            found.update(target for target in (before, after) if target is not None)
            if before != after:
                self.revision += 1
                self._set_target(key, after)
        return frozenset(key for key in found if key in templates)

    def _set_target(self, autoscaler: Key, target: Key | None) -> None:
        before = self._targets.pop(autoscaler, None)
        if before is not None:
            others = tuple(key for key in self._autoscalers.pop(before) if key != autoscaler)
            self._autoscalers |= {before: others} if others else {}
        if target is not None:
            self._targets[autoscaler] = target
            self._autoscalers[target] = tuple(sorted((*self._autoscalers.get(target, ()), autoscaler)))


NO_AUTOSCALERS: Final = AutoscalerIndex((), divides_limits=False)
"""For a commit without objects of AUTOSCALER_KINDS."""


def read_target(template: Document) -> Key | None:
    """Return the workload that an object scales; None if it scales none."""
    return read_scale_target(template.key, template.body)


def divide_limits(autoscaler: Document, target: Outcome) -> dict[str, Edits]:
    """Return the limits of an autoscaler for each cluster of its target, in proportion to the replicas there.

    Each part is at least 1, unless the limit itself is 0, and no minimum exceeds its maximum. A missing minimum of 1 is not written.
    """
    kind = AUTOSCALER_KINDS[autoscaler.key.group, autoscaler.key.kind]
    replicas = {name: count for name, count in target.replicas_by_cluster.items() if count}
    names = sorted(replicas)
    minimum, maximum = read_scale_limits(autoscaler.key[:2], autoscaler.body)
    if not names or minimum is None or not maximum:
        return {}
    votes = [replicas[name] for name in names]
    maxima = _divide(maximum, votes)
    minima = [min(pair) for pair in zip(_divide(minimum, votes), maxima, strict=True)]
    written = get_field(autoscaler.body, "spec", kind.minimum) is not None
    return {
        name: (*(((f"spec.{kind.minimum}", low),) if written else ()), (f"spec.{kind.maximum}", high))
        for name, low, high in zip(names, minima, maxima, strict=True)
    }


def _divide(total: int, votes: list[int]) -> list[int]:
    """Divide a limit in proportion, with parts of at least 1: the largest parts give what the others lack."""
    if not total:
        return [0] * len(votes)
    parts = [max(part, 1) for part in dispense(total, votes)]
    for _ in range(min(sum(parts) - total, len(parts))):
        largest = max(range(len(parts)), key=lambda index: parts[index])
        parts[largest] = max(parts[largest] - 1, 1)
    return parts


def _set_limits(targets: tuple[TargetCluster, ...], limits: Mapping[str, Edits], template: Document) -> tuple[TargetCluster, ...]:
    """Return the target clusters of an autoscaler with its limits there. A limit that an override policy has set stays."""
    return tuple(
        _set_target_limits(target, limits[target.cluster], template) if target.cluster in limits and not target.evicting else target
        for target in targets
    )


def _set_target_limits(target: TargetCluster, limits: Edits, template: Document) -> TargetCluster:
    if target.body is None:
        return target._replace(edits=limits)
    kept = [(path, count) for path, count in limits if _read(target.body, path) == _read(template.body, path)]
    return target._replace(body=set_counts(target.body, kept))


def _read(body: Body, path: str) -> object:
    return get_field(body, *path.split("."))


def find_scaled_per_cluster(
    index: AutoscalerIndex,
    template: Document,
    replicas_path: str | None,
    assignments: Iterable[Assignment],
    templates: Mapping[Key, Document],
    is_selected: Callable[[Document], bool] = lambda _: True,
) -> Iterator[Finding]:
    """Report a workload with divided replicas whose number each of its clusters sets by itself; `is_selected` returns whether clusters may
    get an autoscaler."""
    divided = sorted(assignment for assignment in assignments if assignment.replicas)
    if len(divided) < 2 or replicas_path is None or not index.retains_replicas(template):
        return
    keys = index.list_autoscalers(template.key)
    undivided = [templates[key] for key in keys if key in templates and not index.has_divided_limits(templates[key])]
    if keys and not undivided:
        return
    shares = format_names([f"{assignment.name} {assignment.replicas}" for assignment in divided])
    written = _read(template.body, replicas_path)
    kept = (
        f"{template.key} is divided ({shares}), but its manifests keep {replicas_path} as in the source "
        f"({'none' if written is None else written})"
    )
    location, resource = locate_document(template), template.key.resource
    if undivided and not any(map(is_selected, undivided)):
        names, each = format_names([str(one.key) for one in undivided]), 1 if written is None else written
        message = (
            f"{kept} for {names}, which no policy selects: each cluster runs {each}; select it in the policy, too, or remove it"
        )
        yield Finding("warning", "scaled-per-cluster", message, location, resource)
        return
    kept += ", and each cluster scales by itself:"
    if not undivided:
        message = f"{kept} the workload has the label {RETAIN_REPLICAS}"
        yield Finding("info", "scaled-per-cluster", message, location, resource)
        return
    limits = format_names([_describe_limits(autoscaler) for autoscaler in undivided])
    message = (
        f"{kept} {limits}; to divide these limits, set spec.karmada.autoscalerLimits: divide in gitsched.yaml, or the annotation "
        f"{LIMITS_ANNOTATION}: divide on the autoscaler; to have all replicas in each cluster, use replicaSchedulingType: Duplicated"
    )
    yield Finding("warning", "scaled-per-cluster", message, location, resource)


def _describe_limits(autoscaler: Document) -> str:
    low, high = read_scale_limits(autoscaler.key[:2], autoscaler.body)
    return f"{autoscaler.key} sets {'?' if low is None else low} to {high or '?'} replicas in each"
