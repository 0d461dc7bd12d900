"""Objects that a policy placed by themselves before, and that a Bundle, a kustomization or a delivery tool builds now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.catalog import KustomizedDocument, resolve_key
from gitsched.decide.variants.bundle_delivery import find_bundle, read_delivery
from gitsched.model.changes import Cause, Move
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, Location, format_names, locate_document, locate_origin
from gitsched.model.variants import BUNDLE_KIND, MANIFESTS
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import relative_path
from gitsched.report.lines import format_key

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.scheduling import Outcome

_KEEP_CURE = (
    "To keep the objects running, annotate them with kustomize.toolkit.fluxcd.io/prune: disabled or "
    "argocd.argoproj.io/sync-options: Prune=false, and reconcile before they become a part"
)


class PartOwner(NamedTuple):
    """What builds an object now: `reason` says it, and `location` is where it is written.

    `replicas` are those of the clusters that get the same object from it, None where they have no number, and `carriers` the workloads
    that bring it to these clusters. `rest` says why the object leaves other clusters. `built` are the objects that kustomizations build
    from it, with their directories. `bundles` are those that have it as a part, and `bundle_clusters` the clusters they go to.
    """

    reason: str
    location: Location | None
    replicas: Mapping[str, int | None]
    rest: str
    carriers: Mapping[Key, tuple[str, ...]] = {}
    built: tuple[tuple[Key, str], ...] = ()
    bundles: tuple[Key, ...] = ()
    bundle_clusters: tuple[str, ...] = ()


class PartOwners:
    """Finds what builds objects that no policy places by themselves any more."""

    def __init__(self, decisions: DecisionSet, config: Config) -> None:
        self._decisions, self._config = decisions, config

    def list_keys(self) -> list[Key]:
        """Return the objects that are built, and those of the files that builds read."""
        return sorted({*self._bundles, *self._parts})

    def find(self, key: Key) -> PartOwner | None:
        """Return what builds an object; None if nothing does, or if it is still an object of its own."""
        if key in self._decisions.templates or (key in self._decisions.kustomized and key not in self._unbuilt):
            return None
        part = self._parts.get(key)
        bundles = self._bundles.get(key) or (list(part.bundles) if part is not None else [])
        if bundles:
            return self._describe_bundles(key, bundles)
        return self._describe_build(part) if part is not None else None

    def list_clusters(self, key: Key) -> frozenset[str]:
        """Return the clusters to which Bundles bring an object, as a file in their directory or by a delivery tool."""
        pairs = [(bundle, outcome) for bundle in self._bundles.get(key, ()) for outcome in self.list_outcomes(bundle)]
        return frozenset().union(*(self._list_replicas(key, bundle, outcome) for bundle, outcome in pairs))

    def add_brought(self, key: Key, before: Mapping[str, int | None], after: dict[str, int | None]) -> dict[str, int | None]:
        """Return the replicas by cluster `after` a change, of a part that cannot be built with those where Bundles bring it instead."""
        if key not in self._unbuilt:
            return after
        return {**{cluster: before[cluster] for cluster in self.list_clusters(key) if cluster in before}, **after}

    @cached_property
    def _unbuilt(self) -> frozenset[Key]:
        source = self._decisions.input
        return (
            frozenset(document.key for document, part in source.parts if not part.is_reported)
            if source is not None
            else frozenset()
        )

    @cached_property
    def _parts(self) -> dict[Key, KustomizedDocument]:
        found: dict[Key, KustomizedDocument] = {}
        scopes = self._decisions.catalog.kind_scopes
        for part in self._decisions.replaced:
            raw = part.document
            found.setdefault(resolve_key(raw, scopes) or Key(raw.group, raw.kind, raw.namespace, raw.name), part)
        return found

    @cached_property
    def _bundles(self) -> dict[Key, list[Key]]:
        """The Bundles of which objects are a part, those that are placed first."""
        decisions = self._decisions
        found: dict[Key, dict[Key, None]] = {}
        for bundle in sorted(decisions.variants, key=lambda key: (not self.list_outcomes(key), key)):
            if bundle[:2] == BUNDLE_KIND:
                for variant in decisions.variants[bundle].variants:
                    for document in variant.objects:
                        found.setdefault(document.key, {})[bundle] = None
        return {key: list(bundles) for key, bundles in found.items()}

    @cached_property
    def _outcomes(self) -> dict[Key, list[Outcome]]:
        found: dict[Key, list[Outcome]] = {}
        for outcome in self._decisions.outcomes.values():
            for bundle in outcome.bundles:
                found.setdefault(bundle, []).append(outcome)
        return found

    @cached_property
    def _built(self) -> dict[tuple[str, str], list[Document]]:
        """The objects that are built, by the file and the kind in the base."""
        found: dict[tuple[str, str], list[Document]] = {}
        for document in self._decisions.catalog.templates.values():
            if document.origin is not None and document.origin.root:
                found.setdefault((document.origin.path, document.key.kind), []).append(document)
        return found

    def list_outcomes(self, bundle: Key) -> list[Outcome]:
        return self._outcomes.get(bundle, [])

    def _describe_bundles(self, key: Key, bundles: list[Key]) -> PartOwner:
        """Describe the Bundles that an object is a part of."""
        replicas: dict[str, int | None] = {}
        carriers: dict[Key, tuple[str, ...]] = {}
        tools: set[str] = set()
        pairs = [(bundle, outcome) for bundle in bundles for outcome in self.list_outcomes(bundle)]
        for bundle, outcome in pairs:
            tool = read_delivery(find_bundle(self._decisions.templates[outcome.key], outcome, bundle))
            found = self._list_replicas(key, bundle, outcome) if tool == MANIFESTS else {}
            carriers[outcome.key] = (*carriers.get(outcome.key, ()), *(cluster for cluster in found if cluster not in replicas))
            replicas = {**found, **replicas}
            tools |= {tool} - {MANIFESTS}
        if not any(outcome.targets for _, outcome in pairs):
            rest = "which no cluster gets. To keep it, place the Bundle, or take the file out of its directory"
        elif tools:
            builder = " and ".join(sorted(tools))
            rest = (
                f"which {builder} builds: what delivered the object before deletes it, and {builder} creates it again where the Bundle "
                f"goes. {_KEEP_CURE}"
            )
        else:
            rest = "which does not bring it there. To keep it, place the Bundle there, or take the file out of its directory"
        names = format_names([format_key(bundle) for bundle in bundles])
        clusters = sorted({name for _, outcome in pairs for name in outcome.replicas_by_cluster})
        owner = PartOwner(f"part of {names}", self._locate(bundles[0]), replicas, rest, carriers)
        return owner._replace(bundles=tuple(bundles), bundle_clusters=tuple(clusters))

    def _list_replicas(self, key: Key, bundle: Key, outcome: Outcome) -> dict[str, int | None]:
        """Return the clusters that get an object from a Bundle as a file in their directory, with the replicas there."""
        variants, path = self._decisions.variants.get(bundle), relative_path(key)
        found: dict[str, int | None] = {}
        for target in outcome.targets:
            kept = target.keeps_manifest and path in outcome.kept_paths.get(target.cluster, ())
            variant = variants.find(target.cluster) if variants is not None else None
            built = next((entry for entry in variant.objects if entry.key == key), None) if variant is not None else None
            if kept or (built is not None and not target.keeps_manifest):
                count = count_copy_replicas([built.body], self._config) if built is not None else None
                found[target.cluster] = target.replicas if target.workload == key and target.replicas is not None else count
        return found

    def _describe_build(self, part: KustomizedDocument) -> PartOwner:
        raw = part.document
        location = locate_origin(raw.origin) if raw.origin is not None else None
        built = self._built.get((raw.path, raw.kind), [])
        built = [one for one in built if one.origin and raw.origin and one.origin.line == raw.origin.line] or built
        document = next((entry for entry in built if raw.name in entry.key.name), built[0] if built else None)
        if document is None or document.origin is None:
            return PartOwner(
                part.describe(), location, {}, "so it is no object of its own. To keep it, write it to a file that nothing builds"
            )
        origin, outcome = document.origin, self._decisions.outcomes.get(document.key)
        by = f" as {origin.tool} says" if origin.tool else ""
        clusters = format_names(sorted(outcome.replicas_by_cluster)) if outcome is not None else ""
        rest = f"as {format_key(document.key)}, which {f'goes to {clusters}' if clusters else 'no policy places'}"
        cure = "If that is meant, have a policy select it; else name the file in source.kustomize.ignore"
        names = tuple(sorted((one.key, one.origin.root) for one in built if one.origin is not None))
        return PartOwner(f"built by kustomization {origin.root}{by}", location, {}, f"{rest}. {cure}", built=names)

    def _locate(self, bundle: Key) -> Location | None:
        document = self._decisions.templates.get(bundle)
        return locate_document(document) if document is not None else None


def make_part_move(key: Key, before: Mapping[str, int | None], owner: PartOwner) -> Move | None:
    """Return the move of an object that something builds now; None if its clusters keep it with the same replicas."""
    after = {cluster: before[cluster] if count is None else count for cluster, count in owner.replicas.items() if cluster in before}
    if after == before:
        return None
    reason = f"now {owner.reason}"
    return Move(key, before, after, reason, (Cause(reason, owner.location),))


def find_leaving_parts(parts: Iterable[tuple[Key, Mapping[str, int | None], PartOwner]]) -> Iterator[Finding]:
    """Yield a warning about objects that leave clusters because something builds them now, one for each reason and set of clusters.

    `parts` are objects with their former clusters.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[tuple[Key, Location | None]]] = {}
    for key, before, owner in parts:
        left = tuple(sorted(before.keys() - owner.replicas.keys()))
        if left:
            groups.setdefault((owner.reason, owner.rest, left), []).append((key, owner.location))
    for (reason, rest, clusters), found in groups.items():
        (first, location), one = found[0], len(found) == 1
        names = format_names([format_key(key) for key, _ in found])
        message = f"{names} {'leaves' if one else 'leave'} {format_names(clusters)}: {'it is' if one else 'they are'} now {reason}, {rest}"
        yield Finding("warning", "became-part", message, location, first.resource, is_change=True)
