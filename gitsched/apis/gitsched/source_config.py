"""The section `source` of gitsched.yaml: what is read, built and left out."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from gitsched.apis.gitsched.branch_names import check_branch_name
from gitsched.apis.gitsched.bundle import ClusterRule, parse_cluster_rule
from gitsched.model.cluster_facts import StaleRule
from gitsched.model.labels import parse_selector
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection

_REMOTE = re.compile(r"(?=[\w./])(?:[\w.-]+(?::\d+)?)?(?:/[\w.~+-]+)*/?")


CLUSTER_PLACEHOLDER = "{cluster}"


class FactsConfig(NamedTuple):
    """Branches of the source repository with documents that machines write, such as scores; "" for none.

    `branch` holds documents of all clusters. `cluster_branches` contains {cluster} and names a branch for each cluster, which holds only
    that cluster's documents. `history` is the number of commits that gitsched keeps on each of them. `repository` is the URL of another
    repository that has them. Facts about a cluster that are older than `stale_after` are treated as `stale_rule` says.
    """

    branch: str = ""
    cluster_branches: str = ""
    history: int = 100
    repository: str = ""
    stale_after: timedelta = timedelta(hours=1)
    stale_rule: StaleRule = "keep"

    @property
    def has_branches(self) -> bool:
        """Whether there are facts branches."""
        return bool(self.branch or self.cluster_branches)


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
    repository, `roots` its directories that are pushed as artifacts of their own."""

    ignore: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


class SourceVariant(NamedTuple):
    """A directory, with `*` and `**`, whose objects are for some clusters."""

    path: str
    clusters: ClusterRule


class SourceConfig(NamedTuple):
    """The source: `branch` is "" for the branch of HEAD; no `paths` means all paths; `ignore` has the syntax of .gitignore. One of the
    `verify_keys`, which are public keys, must sign a source commit, if there are any. `strict`: every issue of a schema is an error."""

    branch: str = ""
    paths: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    facts: FactsConfig = FactsConfig()
    kustomize: KustomizeConfig = KustomizeConfig()
    delivery_tools: DeliveryToolsConfig = DeliveryToolsConfig()
    variants: tuple[SourceVariant, ...] = ()
    verify_keys: tuple[str, ...] = ()
    strict: bool = False


def parse_source(source: ConfigSection, output_branch: str) -> SourceConfig:
    """Parse the section; `output_branch` is the branch that no other may have the name of. Raises SettingError."""
    branch = source.get_string("branch")
    facts = _parse_facts(source.get_section("facts"), {branch, output_branch})
    kustomize = _parse_kustomize(source.get_section("kustomize"))
    tools = source.get_section("deliveryTools")
    delivery_tools = DeliveryToolsConfig(tools.get_strings("ignore"), tools.get_strings("repositories"), tools.get_strings("roots"))
    variants = tuple(_parse_source_variant(entry) for entry in source.list_sections("variants"))
    keys = source.get_section("verify").get_strings("keys")
    return SourceConfig(
        branch,
        source.get_strings("paths"),
        source.get_strings("ignore"),
        facts,
        kustomize,
        delivery_tools,
        variants,
        keys,
        source.get_bool("strict", False),
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


def _can_be_cluster_branch(name: str, pattern: str) -> bool:
    """Return whether a branch has the name of one for some cluster."""
    prefix, _, suffix = pattern.partition(CLUSTER_PLACEHOLDER)
    return name.startswith(prefix) and name.endswith(suffix) and "/" not in name[len(prefix) :]


def _parse_facts(facts: ConfigSection, other_branches: set[str]) -> FactsConfig:
    branch, pattern = facts.get_string("branch"), facts.get_string("clusterBranches")
    if branch and (check_branch_name(branch) or branch in other_branches):
        facts.reject("branch", "the name of a branch other than source.branch and output.branch, such as facts")
    if pattern and (pattern.count(CLUSTER_PLACEHOLDER) != 1 or check_branch_name(pattern.replace(CLUSTER_PLACEHOLDER, "cluster"))):
        facts.reject("clusterBranches", "the name of a branch with {cluster} in it, once, such as cluster-facts/{cluster}")
    short, others = pattern.removeprefix("refs/heads/"), {name.removeprefix("refs/heads/") for name in (branch, *other_branches)}
    others.discard("")
    if short == CLUSTER_PLACEHOLDER or (short and any(_can_be_cluster_branch(name, short) for name in others)):
        # A cluster of that name could write the other branch.
        facts.reject("clusterBranches", "a name that no other branch can have, such as cluster-facts/{cluster}")
    if any(pattern.startswith(f"{name}/") for name in others):
        # Git cannot have the branches facts and facts/ash at the same time.
        facts.reject("clusterBranches", "a name that does not begin with the name of another branch and a slash")
    history = facts.get_integer("history", FactsConfig().history, 1)
    stale_after = facts.get_duration("staleAfter", FactsConfig().stale_after)
    if not stale_after:
        facts.reject("staleAfter", "a duration of more than 0, such as 1h")
    rule = facts.get_choice("stale", "keep", "noNewPlacements", "evict")
    return FactsConfig(
        branch.removeprefix("refs/heads/"),
        pattern.removeprefix("refs/heads/"),
        history or 1,
        facts.get_string("repository"),
        stale_after,
        cast(StaleRule, rule),
    )
