"""Build the variants of Bundles that clusters use, and say which cluster gets which."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import (
    BundleSpec,
    ClusterMetadata,
    VariantRule,
    describe_missing_values,
    merge_values,
    parse_bundle,
    resolve_values,
)
from gitsched.apis.gitsched.config import Config
from gitsched.build import flux
from gitsched.decide.catalog import (
    KindScopes,
    RawDocument,
    make_added_namespace_finding,
    make_duplicate_finding,
    read_declared_scopes,
)
from gitsched.decide.cluster_metadata import read_cluster_metadata
from gitsched.decide.variants.bundle_delivery import read_delivery
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding
from gitsched.model.tool_groups import KUSTOMIZE_GROUP
from gitsched.model.variants import BUNDLE, BUNDLE_GROUP, MANIFESTS, HelmOptions, Variant, VariantFormat, WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.builds.reconciled_path import NO_BUNDLED_PATHS, BundledPaths, ReconciledPath
from gitsched.reconcile.bundles.bundle_directories import (
    BuiltBundles,
    DirectoryReader,
    build_bundle_directories,
    find_missing_programs,
)
from gitsched.reconcile.bundles.bundle_files import DirectoryFiles, DirectoryRequest, list_directory_files
from gitsched.reconcile.bundles.bundle_findings import (
    find_missing,
    find_omitted,
    find_unbuildable,
    find_unused,
    make_empty_finding,
    make_tool_finding,
)
from gitsched.reconcile.bundles.bundle_parts import NO_PARTS, BundleParts, list_bundles
from gitsched.reconcile.bundles.bundle_tools import BundleTools, ToolBuilds, list_tool_files, make_key
from gitsched.reconcile.source.commit_tree import CommitTree

MAX_OBJECTS = 500_000
"""Objects of all variants together."""


class _Use(NamedTuple):
    """A directory with the values that some clusters get of it."""

    digest: str
    values: tuple[tuple[str, str], ...]


class _Choice(NamedTuple):
    """The directory of each variant of a Bundle by its digest, what each cluster uses, and clusters that get nothing, with the reason.

    `lacking` are those among them without a label or annotation, with the name of the value that refers to it. `details` say how a
    directory is built, by digest.
    """

    bundle: RawDocument
    spec: BundleSpec
    requests: Mapping[str, DirectoryRequest]
    uses: Mapping[str, _Use]
    failed: Mapping[str, str]
    lacking: Mapping[str, str]
    details: Mapping[str, str]


def read_bundles(
    documents: Sequence[RawDocument],
    commit: CommitTree,
    reader: FileReader,
    config: Config,
    context: BuildContext,
    bundled: BundledPaths = NO_BUNDLED_PATHS,
) -> BundleParts:
    """Build the variants that clusters use, for all Bundles among the documents of a source, with the settings of the source.

    `bundled` are the paths of delivery tools in their directories.
    """
    bundles = {_get_key(raw): raw for raw in reversed(list(list_bundles(documents)))}
    if not bundles:
        return NO_PARTS
    clusters = read_cluster_metadata(documents)
    findings: list[Finding] = []
    chooser = _VariantChooser(clusters, commit, BundleTools(bundled, config.source.variants, commit), findings)
    chosen = _ChosenVariants.read({key: chooser.choose(raw) for key, raw in sorted(bundles.items())}, chooser)
    missing = find_missing_programs(map(chosen.files.__getitem__, chosen.used), context)
    findings += chosen.find_problems(missing)
    chosen = chosen.exclude(missing)
    paths = {digest: path for digest, path in chooser.paths.items() if digest in chosen.used and not chosen.files[digest].missing}
    built = build_bundle_directories(chosen.list_used(), chosen.files, commit, reader, context)
    tools = ToolBuilds(paths, bundled, commit, reader, context)
    findings += tools.findings
    assembler = _Assembler(
        built, DirectoryReader(commit, reader), commit, findings, tools, chosen.list_substituted(_list_substituted(documents))
    )
    printed = {use: assembler.read(use) for use in dict.fromkeys(chosen.list_uses())}
    parts = [raw for raws in printed.values() for raw in raws or ()]
    scopes = KindScopes([*documents, *parts], config.kinds)
    variants = {key: assembler.assemble(choice, printed, scopes, context.commit) for key, choice in chosen.choices.items()}
    findings = [*built.findings, *findings]
    return BundleParts(
        variants,
        tuple(dict.fromkeys(findings)),
        chosen.unite(lambda listed: listed.resources),
        chosen.unite(lambda listed: listed.inputs),
        tuple(kind for raw in parts for kind in read_declared_scopes(raw)),
        built.record._replace(builder=built.record.builder or tools.record.builder, helm=built.record.helm or tools.record.helm),
        any(finding.severity == "error" for finding in findings),
        chosen.unite(lambda listed: listed.files).union(tools.inputs),
        frozenset(chooser.used_rules),
        chosen.list_owners(),
        frozenset(
            key for key, choice in chosen.choices.items() if variants[key].failed or read_delivery(choice.bundle.body) != MANIFESTS
        ),
    )


def _list_substituted(documents: Iterable[RawDocument]) -> frozenset[str]:
    """Return the directories in whose objects Flux substitutes variables: a Bundle of one never delivers these as they are."""
    return frozenset(
        flux.read_path(raw.body)
        for raw in documents
        if (raw.group, raw.kind) == (KUSTOMIZE_GROUP, flux.KIND) and get_field(raw.body, "spec", "postBuild")
    )


def _get_key(raw: RawDocument) -> Key:
    return Key(BUNDLE_GROUP, BUNDLE, raw.namespace or "default", raw.name)


class _VariantChooser:
    """Chooses the variants of clusters, and the documents of delivery tools as which they are built: `paths`, by the digest of a request.

    `used_rules` are the indices of the entries of `source.variants` that choose such documents.
    """

    def __init__(
        self, clusters: Sequence[ClusterMetadata], commit: CommitTree, tools: BundleTools, findings: list[Finding]
    ) -> None:
        self._clusters, self._commit, self._tools, self._findings = clusters, commit, tools, findings
        self._listed: dict[str, DirectoryFiles] = {}
        self.paths: dict[str, ReconciledPath] = {}
        self.used_rules: set[int] = set()

    def list_files(self, request: DirectoryRequest) -> DirectoryFiles:
        """Return the files that a request reads."""
        digest = request.digest
        if digest not in self._listed:
            files = list_directory_files(request, self._commit)
            path = self.paths.get(digest)
            self._listed[digest] = files if path is None else list_tool_files(path, files, self._commit)
        return self._listed[digest]

    def choose(self, bundle: RawDocument) -> _Choice:
        """Choose the variant of each cluster. Variants that no cluster gets, or that cannot be built as a tool does, are findings."""
        spec = parse_bundle(bundle.body)
        plain = [DirectoryRequest(rule.path, rule.helm) for rule in spec.variants]
        requests = {request.digest: request for request in plain}
        uses: dict[str, _Use] = {}
        failed: dict[str, str] = {}
        lacking: dict[str, str] = {}
        details: dict[str, str] = {}
        chosen: dict[int, list[str]] = {}
        problems: dict[tuple[int, str], None] = {}
        for cluster in self._clusters:
            index = spec.find_variant(cluster)
            if index is None:
                continue
            chosen.setdefault(index, []).append(cluster.name)
            rule = spec.variants[index]
            values, missing = resolve_values(spec, cluster)
            if missing:
                failed[cluster.name] = describe_missing_values(spec, missing)
                lacking[cluster.name] = missing[0]
                continue
            tool = self._tools.choose(spec, rule, self.list_files(plain[index]), cluster)
            self.used_rules.update(() if tool.rule is None else (tool.rule,))
            if tool.problem:
                problems[index, tool.problem] = None
                failed[cluster.name] = f"{rule.path} is not built"
                continue
            request = plain[index]._replace(tool=make_key(tool.path))
            if rule.helm is not None and values:
                request = request._replace(helm=_add_values(bundle.body, rule.helm, dict(values)))
            digest = request.digest
            requests[digest] = request
            if tool.path is not None:
                self.paths[digest] = tool.path
            details[digest] = _describe_build(rule, tool.path, dict(values))
            uses[cluster.name] = _Use(digest, values if rule.helm is None else ())
        for index, problem in problems:
            self._findings.append(make_tool_finding(bundle, spec.variants[index], problem))
        if self._clusters:
            self._findings += find_unused(bundle, spec, self._clusters, chosen)
        return _Choice(bundle, spec, requests, uses, failed, lacking, details)


def _describe_build(rule: VariantRule, path: ReconciledPath | None, values: Mapping[str, str]) -> str:
    """Say how a directory is built: as a document of a delivery tool says, or with the values of a chart."""
    parts = [f"as {path.name} builds it"] if path is not None else []
    if rule.helm is not None:
        parts += rule.helm.values_files
        parts += [f"{name}={value}" for name, value in values.items()]
        own = rule.pointer[1] == "variants"
        parts += [f"values of spec.variants[{rule.pointer[-1]}]" if own else "values of spec.helm"] if rule.helm.values else []
    return ", ".join(parts)


def _add_values(body: Body, helm: HelmOptions | None, values: Mapping[str, str]) -> HelmOptions | None:
    """Return the options of a chart with the values of a cluster. A name with dots is a path; a number or a boolean stays what it is."""
    if helm is None or not values:
        return helm
    merged = helm.values
    for name, text in values.items():
        written = get_field(body, "spec", "values", name)
        nested: Body = {}
        value = nested if "." in name else text if isinstance(written, str) else written
        *parents, last = name.split(".")
        inner = nested
        for parent in parents[1:]:
            inner[parent] = inner = {}
        if parents:
            inner[last] = text if isinstance(written, str) else written
        merged = merge_values(merged, {parents[0] if parents else name: value})
    return helm._replace(values=merged)


class _ChosenVariants(NamedTuple):
    """The choices of all Bundles; their requests and the files that these read, by digest; and the digests that clusters use."""

    choices: Mapping[Key, _Choice]
    requests: Mapping[str, DirectoryRequest]
    files: Mapping[str, DirectoryFiles]
    used: frozenset[str]

    @classmethod
    def read(cls, choices: Mapping[Key, _Choice], chooser: _VariantChooser) -> _ChosenVariants:
        requests = {digest: request for choice in choices.values() for digest, request in choice.requests.items()}
        files = {digest: chooser.list_files(request) for digest, request in requests.items()}
        return cls(choices, requests, files, frozenset(use.digest for one in choices.values() for use in one.uses.values()))

    def unite(self, get_paths: Callable[[DirectoryFiles], Iterable[str]]) -> frozenset[str]:
        """Return these paths of all directories."""
        return frozenset[str]().union(*map(get_paths, self.files.values()))

    def find_problems(self, programs: Mapping[VariantFormat, str]) -> Iterator[Finding]:
        """Yield an error for each directory that cannot be built at all, and for what `programs` build which are not installed."""
        for choice in self.choices.values():
            yield from find_missing(choice.bundle, choice.spec, self.files)
            yield from find_unbuildable(choice.bundle, [self.files[use.digest] for use in choice.uses.values()], programs)

    def exclude(self, programs: Mapping[VariantFormat, str]) -> _ChosenVariants:
        """Return the choices without the directories that programs build which are not installed, with why."""
        files = {
            digest: one._replace(missing=programs[one.program]) if one.program in programs else one
            for digest, one in (self.files.items() if programs else ())
        }
        return self._replace(files=files) if programs else self

    def list_uses(self) -> Iterator[_Use]:
        """Yield what each cluster uses."""
        return (use for choice in self.choices.values() for use in choice.uses.values())

    def list_used(self) -> dict[str, DirectoryRequest]:
        """Return the requests of the directories that clusters use."""
        return {digest: request for digest, request in self.requests.items() if digest in self.used}

    def list_substituted(self, paths: Container[str]) -> frozenset[str]:
        """Return the digests of the directories without charts that have these paths."""
        return frozenset(digest for digest, one in self.requests.items() if one.helm is None and one.path in paths)

    def list_owners(self) -> dict[str, tuple[Key, ...]]:
        """Return the Bundles that read each file."""
        owners: dict[str, tuple[Key, ...]] = {}
        for key, choice in self.choices.items():
            files = [self.files[digest] for digest in choice.requests]
            for path in frozenset[str]().union(*(one.resources | one.inputs for one in files)):
                owners[path] = (*owners.get(path, ()), key)
        return owners


class _Assembler:
    """Makes variants of what directories print. Variables are substituted in those of `substituted` also without values."""

    def __init__(
        self,
        built: BuiltBundles,
        reader: DirectoryReader,
        commit: CommitTree,
        findings: list[Finding],
        tools: ToolBuilds,
        substituted: Container[str] = (),
    ) -> None:
        self._substituted, self._tools = substituted, tools
        self._built, self._reader, self._commit, self._findings = built, reader, commit, findings
        self._count = 0
        self._omitted: dict[_Use, list[str]] = {}
        self._exceeded = False

    def read(self, use: _Use) -> tuple[RawDocument, ...] | None:
        """Return the documents of a directory with some values; None if it cannot be used."""
        directory = self._built.directories[use.digest]
        if directory.failed:
            return None
        if self._count > MAX_OBJECTS:
            if not self._exceeded:
                self._exceeded = True
                text = (
                    f"the variants of all Bundles have more than {MAX_OBJECTS} objects: no more are built; place fewer directories"
                )
                self._findings.append(Finding("error", "bundle-limit", text))
            return None
        omitted: list[RawDocument] = []
        if use.digest in self._tools:
            documents = self._tools.read(use.digest, dict(use.values), self._findings, omitted)
        else:
            values = dict(use.values) if use.values or use.digest in self._substituted else None
            documents = self._reader.read(directory, values, self._findings, omitted)
        self._count += len(documents or ())
        self._findings += find_omitted(omitted)
        self._omitted[use] = [raw.origin.path for raw in omitted if raw.origin is not None]
        return documents

    def assemble(
        self, choice: _Choice, printed: Mapping[_Use, tuple[RawDocument, ...] | None], scopes: KindScopes, commit: str
    ) -> WorkloadVariants:
        """Return the variants of a Bundle."""
        indices: dict[_Use, int | None] = {}
        variants: list[Variant] = []
        failed = dict(choice.failed)
        by_cluster: dict[str, int] = {}
        for cluster, use in choice.uses.items():
            if use not in indices:
                documents = printed[use]
                path = choice.requests[use.digest].path
                objects = self._resolve(use, path, documents, scopes) if documents is not None else None
                if not documents and documents is not None and not self._omitted[use]:
                    self._findings.append(make_empty_finding(choice.bundle, choice.spec, path))
                indices[use] = len(variants) if objects is not None else None
                if objects is not None:
                    variants.append(self._make_variant(choice, use, objects, commit))
            index = indices[use]
            if index is None:
                failed[cluster] = f"{choice.requests[use.digest].path} cannot be built"
            else:
                by_cluster[cluster] = index
        return WorkloadVariants(tuple(variants), by_cluster, failed, lacking=choice.lacking)

    def _make_variant(self, choice: _Choice, use: _Use, objects: tuple[Document, ...], commit: str) -> Variant:
        request, files = choice.requests[use.digest], self._built.directories[use.digest].files
        source = files.make_source(self._commit, request.helm, self._omitted.get(use, ()))
        return Variant(request.path, objects, files.digest, use.values, commit, source, choice.details.get(use.digest, ""))

    def _resolve(self, use: _Use, path: str, documents: Iterable[RawDocument], scopes: KindScopes) -> tuple[Document, ...] | None:
        """Return documents with their identities; None with a finding if one is defined more than once with different content."""
        directory = self._built.directories[use.digest]
        found: dict[Key, Document] = {}
        for raw in documents:
            if directory.namespace and not raw.namespace and scopes.find_scope(raw.group, raw.kind) is None:
                scopes.assume_namespaced(raw.group, raw.kind)
                self._findings.append(make_added_namespace_finding(raw, directory.namespace, f"the Helm release of {path}"))
            document = scopes.resolve(raw)
            if directory.namespace and document.key.namespace and not raw.namespace:
                document = scopes.resolve(self._reader.add_namespace(raw, directory.namespace))
            if directory.namespace or (raw.origin is not None and raw.origin.root):
                document = _keep_text(document)
            known = found.setdefault(document.key, document)
            if known.body != document.body:
                self._findings.append(make_duplicate_finding((known, document)))
                return None
        return tuple(found.values())


def _keep_text(document: Document) -> Document:
    """Return a document whose text is delivered as it is built, with the fields that a server owns."""
    origin = document.origin
    if origin is None or origin.spans is None:
        return document
    return document._replace(origin=origin._replace(spans=origin.spans._replace(server_owned=())))
