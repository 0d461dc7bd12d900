"""Findings about Bundles: variants that no cluster gets or that cannot be built, and documents that are not delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import BundleSpec, ClusterMetadata, VariantRule
from gitsched.build.commit_files import HIDDEN
from gitsched.decide.catalog import RawDocument
from gitsched.model.document import get_field
from gitsched.model.finding import FieldOrigin, Finding, Pointer, Severity, format_names, locate_origin
from gitsched.model.variants import BUNDLE, VariantFormat
from gitsched.reconcile.builds.kustomize_roots import PROGRAM_MISSING
from gitsched.reconcile.builds.path_builder import EMPTY_BUILD
from gitsched.reconcile.builds.printed_objects import NOT_BUILT
from gitsched.reconcile.bundles.bundle_files import DirectoryFiles, DirectoryRequest


def make_tool_finding(bundle: RawDocument, rule: VariantRule, problem: str) -> Finding:
    """Return the error about a variant that a delivery tool builds in a way that the Bundle does not have."""
    message = f"{problem}. Clusters that have this variant keep what they have"
    return _make_finding(bundle, NOT_BUILT, message, point_to_path(bundle, rule), "error")


def point_to_path(bundle: RawDocument, rule: VariantRule) -> Pointer:
    """Return the field with the path of a variant."""
    own = rule.pointer != ("spec", "path") and get_field(bundle.body, "spec", "variants")[rule.pointer[-1]].get("path")
    return (*rule.pointer, "path") if own else ("spec", "path")


def _make_finding(bundle: RawDocument, code: str, message: str, pointer: Pointer, severity: Severity = "warning") -> Finding:
    """Return a finding about a field of a Bundle; about one inside of another document, at that document."""
    origin, resource = bundle.origin, (BUNDLE, bundle.namespace or "default", bundle.name)
    if origin is None:
        return Finding(severity, code, message, None, resource)
    return Finding(severity, code, message, locate_origin(origin), resource, FieldOrigin(origin, pointer))


def find_unused(
    bundle: RawDocument, spec: BundleSpec, clusters: Sequence[ClusterMetadata], chosen: Mapping[int, Sequence[str]]
) -> Iterator[Finding]:
    """Yield a finding for each variant that no cluster gets, and for each cluster that several variants name."""
    known = {cluster.name for cluster in clusters}
    named: dict[str, VariantRule] = {}
    for index, rule in enumerate(spec.variants):
        where = (*rule.pointer, "clusters")
        unknown = sorted((rule.clusters.names or frozenset()) - known)
        if unknown:
            message = (
                f"the variant {rule.path} names {format_names(unknown)}, which no document describes: correct or remove the name"
            )
            yield _make_finding(bundle, "bundle-unused", message, where)
        for name in sorted((rule.clusters.names or frozenset()) & known):
            if name in named:
                message = (
                    f"{name} is named by the variants {named[name].path} and {rule.path}: it gets {named[name].path}, the first"
                )
                yield _make_finding(bundle, "bundle-overlap", message, where)
            named.setdefault(name, rule)
        if index in chosen or rule.pointer == ("spec", "path") or (unknown and not (rule.clusters.names or frozenset()) & known):
            continue
        selected = [cluster.name for cluster in clusters if rule.clusters.matches(cluster)]
        reason = (
            f"all clusters that it selects get an earlier variant: {format_names(selected)}"
            if selected
            else "it selects none of the clusters: correct the selector or the labels of the clusters"
        )
        yield _make_finding(bundle, "bundle-unused", f"no cluster gets the variant {rule.path}: {reason}", where)


def find_missing(bundle: RawDocument, spec: BundleSpec, files: Mapping[str, DirectoryFiles]) -> Iterator[Finding]:
    """Yield an error for each variant whose directory cannot be built at all."""
    for rule in spec.variants:
        found = files[DirectoryRequest(rule.path, rule.helm).digest]
        if found.missing:
            message = f"{found.missing}. Clusters that have this variant keep what they have; correct the path"
            pointer = point_to_path(bundle, rule)
            yield _make_finding(bundle, HIDDEN if found.is_hidden else "bundle-missing", message, pointer, "error")


def find_unbuildable(
    bundle: RawDocument, used: Iterable[DirectoryFiles], missing: Mapping[VariantFormat, str]
) -> Iterator[Finding]:
    """Yield an error for each program that builds what clusters get of a Bundle and is `missing`."""
    needed = {files.program for files in used if not files.missing}
    for program, problem in missing.items():
        if program in needed:
            message = f"{problem}. Clusters that have the Bundle keep what they have"
            yield _make_finding(bundle, PROGRAM_MISSING, message, ("spec",), "error")


def make_empty_finding(bundle: RawDocument, spec: BundleSpec, path: str) -> Finding:
    """Return the warning about a variant that builds no object."""
    rule = next(rule for rule in spec.variants if rule.path == path)
    message = (
        f"{path} builds no object: clusters that have this variant get nothing of the Bundle, and lose what an earlier one has. Add an "
        "object, or correct the path"
    )
    return _make_finding(bundle, EMPTY_BUILD, message, point_to_path(bundle, rule))


def find_omitted(omitted: Sequence[RawDocument]) -> Iterator[Finding]:
    """Yield a finding for the documents of policy APIs in a directory, which are read from their own files."""
    if not omitted or omitted[0].origin is None:
        return
    first, names = omitted[0], [f"{raw.kind} {raw.name}" for raw in omitted]
    if {raw.kind for raw in omitted} == {BUNDLE} and not omitted[0].origin.root:
        return  # a Bundle may be in its own directory
    message = (
        f"{format_names(names)} {'is' if len(names) == 1 else 'are'} read from {'its' if len(names) == 1 else 'their'} own file as "
        f"documents of gitsched, and not delivered with the Bundle: move {'it' if len(names) == 1 else 'them'} out of the directory"
    )
    yield Finding("warning", "bundle-content", message, locate_origin(omitted[0].origin), (first.kind, first.namespace, first.name))
