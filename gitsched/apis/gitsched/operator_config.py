"""Settings of the operator, who runs gitsched: where decisions go, what may be contacted and read, and which keys sign. They are in a file
outside of the source, so that nobody who can change the source can change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gitsched.apis.gitsched.branch_names import check_branch_name
from gitsched.apis.gitsched.config_section import ConfigSection, SettingError
from gitsched.apis.gitsched.guard_config import GUARD_LIMITS, GuardLimit
from gitsched.apis.gitsched.output_config import parse_directory
from gitsched.model.allow_list import AllowList, HostRule, TokenRule, make_token_rule, parse_host_rule
from gitsched.model.finding import Issue
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body

KIND: Final = "OperatorConfig"
T = TypeVar("T")


class OperatorOutput(NamedTuple):
    """Where decisions go. "" and None leave the choice to the trusted branch; `path` is a directory of the branch, "" for its root, and
    `push` the name or URL of a remote.

    `author` is (name, email), `signing` is (ssh or gpg, key).
    """

    repository: str = ""
    branch: str = ""
    path: str | None = None
    push: str = ""
    author: tuple[str, str] | None = None
    signing: tuple[str, str] | None = None


class OperatorConfig(NamedTuple):
    """All settings of the operator.

    `source_keys` are the public keys of which one must sign a source commit; None leaves it to `source.verify` of the trusted branch.
    `facts_keys` are the public keys that must sign the facts branch of a cluster, by cluster; `facts_repository` may have these branches.
    `guard_limits` take precedence over those
    of gitsched.yaml; so does `hold_stateful`, unless it is None. The source must define a Tenant for each of
    the names in `required_tenants`, which are patterns. `state_keys` are the public keys that may sign the state of a plan.
    """

    output: OperatorOutput = OperatorOutput()
    allow: AllowList = AllowList()
    source_keys: tuple[str, ...] | None = None
    facts_keys: Mapping[str, str] = {}
    guard_limits: tuple[GuardLimit, ...] = ()
    hold_stateful: bool | None = None
    required_tenants: tuple[str, ...] = ()
    facts_repository: str = ""
    state_keys: tuple[str, ...] = ()


NO_OPERATOR_CONFIG: Final = OperatorConfig()


def parse_operator_config(spec: Mapping[str, Any]) -> OperatorConfig:
    """Parse the spec of an OperatorConfig; raises SettingError with the pointer of a member that has a wrong type or value."""
    root = ConfigSection(spec)
    verify, guard = root.get_section("verify"), root.get_section("guard")
    return OperatorConfig(
        _parse_output(root.get_section("output")),
        _parse_allow_list(root.get_section("allow")),
        verify.get_strings("keys") if "keys" in verify.values else None,
        _parse_facts_keys(root.get_section("facts").get_section("keys")),
        tuple(_list_guard_limits(guard)),
        guard.get_bool("holdStateful", True) if guard.values.get("holdStateful") is not None else None,
        root.get_section("tenants").get_strings("required"),
        root.get_section("facts").get_string("repository"),
        verify.get_strings("stateKeys"),
    )


def check_operator_config(body: Body) -> Iterator[Issue]:
    """List what is wrong with an OperatorConfig that its schema accepts."""
    try:
        parse_operator_config(body.get("spec") or {})
    except SettingError as error:
        yield Issue("error", "invalid-config", f"{'.'.join(map(str, error.pointer))} {error.message}", error.pointer)


def _parse_output(output: ConfigSection) -> OperatorOutput:
    branch, author, signing = output.get_string("branch"), output.get_section("author"), output.get_section("signing")
    if branch and (wanted := check_branch_name(branch)):
        output.reject("branch", wanted)
    return OperatorOutput(
        output.get_string("repository"),
        branch,
        parse_directory(output, "path") if output.values.get("path") is not None else None,
        output.get_string("push"),
        (author.require_string("name"), author.require_string("email")) if author.values else None,
        (signing.get_choice("format", "ssh", "gpg"), signing.require_string("key")) if signing.values else None,
    )


def _parse_allow_list(allow: ConfigSection) -> AllowList:
    hosts = allow.get_section("hosts")
    return AllowList(
        _parse_hosts(hosts, "metrics"),
        _parse_hosts(hosts, "statuses"),
        hosts.get_strings("remotes"),
        tuple(_parse_token(entry) for entry in allow.list_sections("tokens")),
    )


def _parse_hosts(section: ConfigSection, name: str) -> tuple[HostRule, ...]:
    return tuple(
        _convert(section, f"{name}/{index}", parse_host_rule, text) for index, text in enumerate(section.get_strings(name))
    )


def _parse_token(entry: ConfigSection) -> TokenRule:
    source = {name: entry.get_string(name) for name in ("env", "file") if entry.get_string(name)}
    if len(source) != 1:
        entry.reject("env", "given, or file, but not both")
    (name,) = source
    return _convert(entry, name, lambda _: make_token_rule(source, _parse_hosts(entry, "hosts")), "")


def _convert(section: ConfigSection, name: str, convert: Callable[[str], T], text: str) -> T:
    try:
        return convert(text)
    except SettingError:
        raise
    except ValueError as error:
        section.reject(name, f"another value: {error}")


def _parse_facts_keys(keys: ConfigSection) -> dict[str, str]:
    return {cluster: keys.require_string(cluster) for cluster in keys.values}


def _list_guard_limits(guard: ConfigSection) -> Iterator[GuardLimit]:
    for scope in GUARD_LIMITS:
        section = guard.get_section(scope)
        for effect in section.values:
            if section.values[effect] is not None:
                yield GuardLimit(scope, effect, section.get_number(effect, 0.0))
