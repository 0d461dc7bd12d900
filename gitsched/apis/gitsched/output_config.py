"""The section `output` of gitsched.yaml: where placements are written, and how long copies and clusters stay."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.branch_names import check_branch_name
from gitsched.apis.gitsched.overlap_config import OverlapConfig, parse_overlap
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection

_DIRECTORY = re.compile(r"(?!\.\.$)(?!\.git)[\w.][\w.-]{0,99}", re.IGNORECASE)


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


def parse_output(output: ConfigSection) -> OutputConfig:
    """Parse the section; missing members have their defaults. Raises SettingError."""
    default, author, signing = OutputConfig(), output.get_section("author"), output.get_section("signing")
    return OutputConfig(
        branch=_parse_branch(output, default.branch),
        repository=output.get_string("repository"),
        push=None if output.values.get("push") is None else output.get_bool("push", False),
        path=parse_directory(output, "path"),
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


def parse_directory(section: ConfigSection, name: str) -> str:
    """Return a directory below the root in normal form; "" for the root itself."""
    parts = [part for part in section.get_string(name).split("/") if part not in ("", ".")]
    # The names that the writer of the output tree rejects, and a depth that leaves enough levels for its files.
    if len(parts) > 20 or any(not _DIRECTORY.fullmatch(part) for part in parts):
        section.reject(name, "a directory below the root, such as fleet or out/fleet, without .. and .git")
    return "/".join(parts)
