"""Settings of gitsched: the spec of gitsched.yaml, and the config of the Python API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from gitsched.apis.gitsched.bundle import ClusterRule, parse_cluster_rule
from gitsched.apis.gitsched.config_section import ConfigSection, SettingError, SettingsSection
from gitsched.apis.gitsched.delivery_config import parse_delivery
from gitsched.apis.gitsched.guard_config import GuardConfig, check_guard, parse_guard
from gitsched.apis.gitsched.overlap_config import OverlapConfig, parse_overlap
from gitsched.model.delivery import DeliveryConfig
from gitsched.model.document import Body, parse_api_group
from gitsched.model.finding import Issue
from gitsched.model.labels import parse_selector

T = TypeVar("T")

GROUP, VERSION, KIND = "gitsched.io", "v1alpha1", "Config"
FILE = "gitsched.yaml"
_BRANCH = re.compile(r"(?!.*(?://|\.\.|@\{|/\.|\.lock(?:/|$)))[^-./\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*(?<![/.])")
"""The rules of git-check-ref-format."""
_REMOTE = re.compile(r"(?=[\w./])(?:[\w.-]+(?::\d+)?)?(?:/[\w.~+-]+)*/?")
_DIRECTORY = re.compile(r"(?!\.\.$)(?!\.git)[\w.][\w.-]{0,99}", re.IGNORECASE)


CLUSTER_PLACEHOLDER = "{cluster}"


class FactsConfig(NamedTuple):
    """Branches of the source repository with documents that machines write, such as scores; "" for none.

    `branch` holds documents of all clusters. `cluster_branches` contains {cluster} and names a branch for each cluster, which holds only
    that cluster's documents. `history` is the number of commits that gitsched keeps on each of them.
    """

    branch: str = ""
    cluster_branches: str = ""
    history: int = 100


class KustomizeConfig(NamedTuple):
    """Kustomizations of the source. `build` are the paths of roots to build, with `*` and `**`; `ignore` has the syntax of .gitignore:
    files there are objects as they are. `remotes` are the other repositories that may be read: host, with organization and repository
    or without, such as github.com/example."""

    build: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    remotes: tuple[str, ...] = ()


class DeliveryToolsConfig(NamedTuple):
    """Directories that Flux Kustomizations and Argo CD Applications of the source reconcile. `ignore` has the syntax of .gitignore: files
    there are objects as they are, and documents there build nothing. `repositories` are the URLs or the names of the sources that are this
    repository."""

    ignore: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()


class SourceVariant(NamedTuple):
    """A directory, with `*` and `**`, whose objects are for some clusters."""

    path: str
    clusters: ClusterRule


class SourceConfig(NamedTuple):
    """The source: `branch` is "" for the branch of HEAD; no `paths` means all paths; `ignore` has the syntax of .gitignore."""

    branch: str = ""
    paths: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    facts: FactsConfig = FactsConfig()
    kustomize: KustomizeConfig = KustomizeConfig()
    delivery_tools: DeliveryToolsConfig = DeliveryToolsConfig()
    variants: tuple[SourceVariant, ...] = ()


class AuthorConfig(NamedTuple):
    """Author of the commits of the output branch."""

    name: str = "gitsched"
    email: str = "gitsched@localhost"


class SigningConfig(NamedTuple):
    """Signing of output commits: `format` is ssh or gpg; `key` is the path of an ssh key or the id of a gpg key."""

    format: str
    key: str


BUILT_IN_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
"""Namespaces that every cluster has."""
DELIVERY_TOOL_NAMESPACES = frozenset(("argocd", "flux-system", "openshift-gitops"))
"""Namespaces of Argo CD, Flux and OpenShift GitOps."""


class OutputConfig(NamedTuple):
    """The output: `repository` is "" for the source itself; `push` None means only to a remote repository.

    `protected_namespaces` are Namespaces that gitsched neither adds to a cluster nor removes: the built-in ones and those of delivery
    tools.
    """

    branch: str = "placements"
    repository: str = ""
    push: bool | None = None
    path: str = ""
    retire_after: timedelta = timedelta(hours=24)
    author: AuthorConfig = AuthorConfig()
    signing: SigningConfig | None = None
    commit_subject: str = ""
    protected_namespaces: frozenset[str] = BUILT_IN_NAMESPACES | DELIVERY_TOOL_NAMESPACES
    overlap: OverlapConfig = OverlapConfig()


class WorkloadKind(NamedTuple):
    """A custom kind with replicas; a path is "" when the kind has no such member."""

    api_version: str
    kind: str
    replicas_path: str = ""
    pod_template_path: str = ""


class KindScope(NamedTuple):
    """Scope of a kind that has no CustomResourceDefinition in the source."""

    api_version: str
    kind: str
    namespaced: bool


class AssumedObject(NamedTuple):
    """Objects that clusters have without a delivery. `kind` may be KIND.GROUP; the other members are patterns with `*` and `?`.

    An object without a namespace matches the pattern `*` only.
    """

    kind: str
    name: str = "*"
    namespace: str = "*"
    clusters: tuple[str, ...] = ("*",)


class ForgeConfig(NamedTuple):
    """The forge where clusters report as commit statuses: `type` is github, gitlab or gitea, `context` contains {cluster}, `token_from`
    names an environment variable or a file."""

    type: str
    repository: str
    url: str = ""
    context: str = "{cluster}"
    token_from: Mapping[str, str] = {}


class ObservationConfig(NamedTuple):
    """Metrics queries: `on_failure` is hold or exclude; `timeout` is for all providers together, in seconds."""

    on_failure: str = "hold"
    timeout: float = 20.0
    statuses: ForgeConfig | None = None


class Config(NamedTuple):
    """All settings.

    `notifications` are as written. `follow_targets` delivers companions of workloads, such as Services, to the clusters of these.
    `api_settings` are the settings of policy APIs that differ from the defaults, by section;
    `upstream_defaults` replace the defaults of sections in `gitsched.schedule`.
    """

    source: SourceConfig = SourceConfig()
    output: OutputConfig = OutputConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    workloads: tuple[WorkloadKind, ...] = ()
    kinds: tuple[KindScope, ...] = ()
    assumed: tuple[AssumedObject, ...] = ()
    guard: GuardConfig = GuardConfig()
    observations: ObservationConfig = ObservationConfig()
    notifications: tuple[Mapping[str, Any], ...] = ()
    follow_targets: bool = False
    api_settings: Mapping[str, Any] = {}
    upstream_defaults: Mapping[str, Any] = {}

    @property
    def pod_paths(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The paths of the pod specs of the declared kinds, by group and kind."""
        return {
            (parse_api_group(kind.api_version), kind.kind): (*kind.pod_template_path.split("."), "spec")
            for kind in self.workloads
            if kind.pod_template_path
        }

    def settings_of(self, section: SettingsSection[T]) -> T:
        """Return the settings of one policy API."""
        settings: T = self.api_settings.get(section.name, self.upstream_defaults.get(section.name, section.default))
        return settings


_api_sections: list[SettingsSection[Any]] = []


def add_settings_section(section: SettingsSection[Any]) -> None:
    """Have `parse_config` parse the section of a policy API; called by gitsched.decide.registry.register."""
    _api_sections.append(section)


def parse_config(spec: Mapping[str, Any], *, upstream: bool = False) -> Config:
    """Parse the spec of a Config; missing members have their defaults, or with `upstream` those of the upstream schedulers.

    Unknown members are ignored. Raises SettingError, a ValueError, with the pointer of a member that has a wrong type or value.
    """
    root = ConfigSection(spec)
    source, output = root.get_section("source"), _parse_output(root.get_section("output"))
    return Config(
        source=_parse_source(source, output),
        output=output,
        delivery=parse_delivery(root.get_section("delivery")),
        api_settings=_parse_api_settings(root, upstream),
        upstream_defaults=_parse_upstream_defaults() if upstream else {},
        workloads=tuple(_parse_workload(entry) for entry in root.list_sections("workloads")),
        kinds=tuple(_parse_kind(entry) for entry in root.list_sections("kinds")),
        assumed=tuple(_parse_assumed(entry) for entry in root.list_sections("assumed")),
        guard=parse_guard(root.get_section("guard"), upstream),
        observations=_parse_observations(root.get_section("observations")),
        notifications=tuple(entry.values for entry in root.list_sections("notifications")),
        follow_targets=root.get_bool("followTargets", False),
    )


def _parse_api_settings(root: ConfigSection, upstream: bool) -> dict[str, Any]:
    defaults = {section.name: section.default for section in _api_sections} | (_parse_upstream_defaults() if upstream else {})
    parsed = {}
    for section in _api_sections:
        values = root.get_section(section.name)
        if upstream and section.upstream_values:
            given = {name: value for name, value in values.values.items() if value is not None}
            values = values._replace(values={**section.upstream_values, **given})
        parsed[section.name] = section.parse(values)
    return {name: settings for name, settings in parsed.items() if settings != defaults[name]}


def _parse_upstream_defaults() -> dict[str, Any]:
    sections = (section for section in _api_sections if section.upstream_values)
    return {section.name: section.parse(ConfigSection(section.upstream_values, f"/{section.name}")) for section in sections}


def check_config(body: Body) -> Iterator[Issue]:
    """List what is wrong with a Config that its schema accepts."""
    try:
        config = parse_config(body.get("spec") or {})
        if config.notifications:
            message = "'notifications' has no effect: use `gitsched watch --status` for statuses, `gitsched comment` for comments"
            yield Issue("warning", "unknown-field", message, ("spec", "notifications"))
        yield from check_guard(config.guard)
    except SettingError as error:
        yield Issue("error", "invalid-config", f"{'.'.join(map(str, error.pointer))} {error.message}", error.pointer)


def check_branch_name(name: str) -> str:
    """Return what a branch name must be if it cannot name the output branch, else ""; it may begin with refs/heads/."""
    short = name.removeprefix("refs/heads/")
    if short.startswith("origin/"):
        return f"the branch's own name, without its remote: {short.removeprefix('origin/')}"
    if short.startswith("refs/") or short in ("HEAD", "@") or len(name) > 250 or not _BRANCH.fullmatch(short):
        return "the name of a branch, such as placements"
    return ""


def _parse_source(source: ConfigSection, output: OutputConfig) -> SourceConfig:
    branch = source.get_string("branch")
    facts = _parse_facts(source.get_section("facts"), {branch, output.branch})
    kustomize = _parse_kustomize(source.get_section("kustomize"))
    tools = source.get_section("deliveryTools")
    delivery_tools = DeliveryToolsConfig(tools.get_strings("ignore"), tools.get_strings("repositories"))
    variants = tuple(_parse_source_variant(entry) for entry in source.list_sections("variants"))
    return SourceConfig(
        branch, source.get_strings("paths"), source.get_strings("ignore"), facts, kustomize, delivery_tools, variants
    )


def _parse_source_variant(entry: ConfigSection) -> SourceVariant:
    path = entry.require_string("path")
    if path.startswith("/") or ".." in path.split("/"):
        entry.reject("path", "a directory of the repository, such as overlays/production, without a leading / and without ..")
    clusters = entry.get_section("clusters").values
    if ("matchLabels" in clusters or "matchExpressions" in clusters) and parse_selector(clusters) is None:
        entry.reject("clusters", "a valid label selector, or names")
    return SourceVariant(path.strip("/"), parse_cluster_rule(clusters))


def _parse_kustomize(kustomize: ConfigSection) -> KustomizeConfig:
    roots = kustomize.get_strings("build")
    if any(root.startswith("/") or ".." in root.split("/") for root in roots):
        kustomize.reject("build", "directories of the repository, such as overlays/*, without a leading / and without ..")
    remotes = kustomize.get_strings("remotes")
    if any(not _REMOTE.fullmatch(remote) for remote in remotes):
        kustomize.reject(
            "remotes", "hosts with organization and repository or without, such as github.com/example, without https://"
        )
    return KustomizeConfig(roots, kustomize.get_strings("ignore"), remotes)


def _parse_facts(facts: ConfigSection, other_branches: set[str]) -> FactsConfig:
    branch, pattern = facts.get_string("branch"), facts.get_string("clusterBranches")
    if branch and (check_branch_name(branch) or branch in other_branches):
        facts.reject("branch", "the name of a branch other than source.branch and output.branch, such as facts")
    if pattern and (pattern.count(CLUSTER_PLACEHOLDER) != 1 or check_branch_name(pattern.replace(CLUSTER_PLACEHOLDER, "cluster"))):
        facts.reject("clusterBranches", "the name of a branch with {cluster} in it, once, such as cluster-facts/{cluster}")
    short, others = pattern.removeprefix("refs/heads/"), {name.removeprefix("refs/heads/") for name in (branch, *other_branches)}
    prefix, _, suffix = short.partition(CLUSTER_PLACEHOLDER)
    if short == CLUSTER_PLACEHOLDER or (
        short
        and any(name.startswith(prefix) and name.endswith(suffix) and "/" not in name[len(prefix) :] for name in others if name)
    ):
        # A cluster of that name could write the other branch.
        facts.reject("clusterBranches", "a name that no other branch can have, such as cluster-facts/{cluster}")
    directories = {name for other in (branch, *other_branches) if (name := other.removeprefix("refs/heads/"))}
    if any(pattern.startswith(f"{name}/") for name in directories):
        # Git cannot have the branches facts and facts/ash at the same time.
        facts.reject("clusterBranches", "a name that does not begin with the name of another branch and a slash")
    history = facts.get_integer("history", FactsConfig().history, 1)
    return FactsConfig(branch.removeprefix("refs/heads/"), pattern.removeprefix("refs/heads/"), history or 1)


def _parse_output(output: ConfigSection) -> OutputConfig:
    default, author, signing = OutputConfig(), output.get_section("author"), output.get_section("signing")
    return OutputConfig(
        branch=_parse_branch(output, default.branch),
        repository=output.get_string("repository"),
        push=None if output.values.get("push") is None else output.get_bool("push", False),
        path=_parse_directory(output, "path"),
        retire_after=output.get_duration("retireAfter", default.retire_after),
        author=AuthorConfig(author.get_string("name", default.author.name), author.get_string("email", default.author.email)),
        signing=SigningConfig(signing.get_choice("format", "ssh", "gpg"), signing.require_string("key"))
        if signing.values
        else None,
        commit_subject=output.get_string("commitSubject"),
        protected_namespaces=_parse_protected_namespaces(output),
        overlap=parse_overlap(output),
    )


def _parse_protected_namespaces(output: ConfigSection) -> frozenset[str]:
    if output.values.get("protectedNamespaces") is None:
        return OutputConfig().protected_namespaces
    return BUILT_IN_NAMESPACES.union(output.get_strings("protectedNamespaces"))


def _parse_branch(output: ConfigSection, default: str) -> str:
    name = output.get_string("branch", default)
    wanted = check_branch_name(name)
    return output.reject("branch", wanted) if wanted else name


def _parse_directory(section: ConfigSection, name: str) -> str:
    """Return a directory below the root in normal form; "" for the root itself."""
    parts = [part for part in section.get_string(name).split("/") if part not in ("", ".")]
    # The names that the writer of the output tree rejects, and a depth that leaves enough levels for its files.
    if len(parts) > 20 or any(not _DIRECTORY.fullmatch(part) for part in parts):
        section.reject(name, "a directory below the root, such as fleet or out/fleet, without .. and .git")
    return "/".join(parts)


def _parse_observations(observations: ConfigSection) -> ObservationConfig:
    timeout = observations.get_seconds("timeout", timedelta(seconds=ObservationConfig().timeout)).total_seconds()
    if not 0 < timeout <= 600:
        observations.reject("timeout", "a number of seconds, more than 0 and at most 600")
    return ObservationConfig(
        observations.get_choice("onFailure", "hold", "exclude"), timeout, _parse_forge(observations.get_section("statuses"))
    )


def _parse_forge(statuses: ConfigSection) -> ForgeConfig | None:
    if "repository" not in statuses.values:
        return None  # the schema requires it if the section has other members
    kind, url = statuses.get_choice("forge", "github", "gitlab", "gitea"), statuses.get_string("url")
    if kind == "gitea" and not url:
        statuses.reject("url", "the address of the server")
    context = statuses.get_string("context", "{cluster}")
    if context.count("{cluster}") != 1:
        statuses.reject("context", "a text with {cluster} in it, once")
    token = statuses.get_section("tokenFrom")
    tokens = {name: token.get_string(name) for name in ("env", "file") if token.get_string(name)}
    return ForgeConfig(kind, statuses.require_string("repository"), url, context, tokens)


def _parse_workload(entry: ConfigSection) -> WorkloadKind:
    return WorkloadKind(
        entry.require_string("apiVersion"),
        entry.require_string("kind"),
        entry.get_string("replicasPath"),
        entry.get_string("podTemplatePath"),
    )


def _parse_kind(entry: ConfigSection) -> KindScope:
    scope = entry.get_choice("scope", "", "Namespaced", "Cluster") or entry.reject("scope", "Namespaced or Cluster")
    return KindScope(entry.require_string("apiVersion"), entry.require_string("kind"), scope == "Namespaced")


def _parse_assumed(entry: ConfigSection) -> AssumedObject:
    return AssumedObject(
        entry.require_string("kind"),
        entry.get_string("name") or "*",
        entry.get_string("namespace") or "*",
        entry.get_strings("clusters") or ("*",),
    )
