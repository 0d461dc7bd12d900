"""Settings of gitsched: the spec of gitsched.yaml, and the config of the Python API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config_section import ConfigSection, SettingError
from gitsched.model.document import Body
from gitsched.model.finding import Issue

GROUP, VERSION, KIND = "gitsched.io", "v1alpha1", "Config"
FILE = "gitsched.yaml"
_BRANCH = re.compile(r"(?!.*(?://|\.\.|@\{|/\.|\.lock(?:/|$)))[^-./\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*(?<![/.])")
"""The rules of git-check-ref-format."""
_DIRECTORY = re.compile(r"(?!\.\.$)(?!\.git)[\w.][\w.-]{0,99}", re.IGNORECASE)


class SourceConfig(NamedTuple):
    """`branch` is "" for the one HEAD names; no `paths` means the whole repository; `ignore` is written as in .gitignore."""

    branch: str = ""
    paths: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class AuthorConfig(NamedTuple):
    """Who the commits of the output branch are from."""

    name: str = "gitsched"
    email: str = "gitsched@localhost"


class SigningConfig(NamedTuple):
    """`format` is ssh or gpg; `key` is the path of an ssh key, or the id of a gpg key."""

    format: str
    key: str


class OutputConfig(NamedTuple):
    """`repository` is "" for the source itself; `push` is None for "when the repository is a remote one"."""

    branch: str = "placements"
    repository: str = ""
    push: bool | None = None
    path: str = ""
    retire_after: timedelta = timedelta(hours=24)
    author: AuthorConfig = AuthorConfig()
    signing: SigningConfig | None = None
    commit_subject: str = ""


class FailbackConfig(NamedTuple):
    """`mode` is Never, OnRebalance or AfterStabilization; `after` counts for the last one only."""

    mode: str = "Never"
    after: timedelta = timedelta()


class KarmadaConfig(NamedTuple):
    """How Karmada's policies are read; gitsched's own defaults, not upstream's."""

    taint_eviction: bool = True
    allow_no_execute_taint_policy: bool = False
    missing_facts: str = "assume"
    eviction_purge_mode: str = "Gracefully"
    graceful_eviction_timeout: timedelta = timedelta(minutes=10)
    enable_empty_workload_propagation: bool = False
    preemption: bool = False
    failback: FailbackConfig = FailbackConfig()


class KrakeConfig(NamedTuple):
    """`stickiness` is a weight; `stickiness_formula` is document or krake; `metric_constraints` says what they look at: weighted,
    normalised or raw values."""

    reschedule_after: timedelta = timedelta(seconds=60)
    stickiness: float = 0.1
    stickiness_formula: str = "document"
    metric_constraints: str = "weighted"


class AutoscalerConfig(NamedTuple):
    """`leader` false leaves the number of pods to somebody else; `skip` is how a caller says so for one run. `compact_age` is how long
    ago pods were last emptied, where the caller knows better than the output branch."""

    attempt_scale_down: bool = True
    leader: bool = True
    skip: bool = False
    refresh_period: timedelta = timedelta(seconds=10)
    compact_age: timedelta | None = None


class VpodKind(NamedTuple):
    """A kind of event source; `replicas_path` is where it says how many vreplicas it wants."""

    api_version: str
    kind: str
    replicas_path: str


class KnativeConfig(NamedTuple):
    """`capacity` counts vreplicas a pod, None while nobody said; `scale_up` is keep or replace. `stateful_set` is "", a name, or
    namespace/name. `reserved` are vreplicas promised but not in a status yet, by source (namespace/name) and pod."""

    capacity: int | None = None
    policy: str = ""
    scale_up: str = "keep"
    cluster: str = ""
    stateful_set: str = ""
    autoscaler: AutoscalerConfig = AutoscalerConfig()
    sources: tuple[VpodKind, ...] = ()
    reserved: Mapping[str, Mapping[str, int]] = {}


class WorkloadKind(NamedTuple):
    """A custom kind with replicas; a path is "" when the kind has no such member."""

    api_version: str
    kind: str
    replicas_path: str = ""
    pod_template_path: str = ""


class KindScope(NamedTuple):
    """Whether objects of a kind are in a namespace, where no CustomResourceDefinition says so."""

    api_version: str
    kind: str
    namespaced: bool


class GuardConfig(NamedTuple):
    """A commit is refused when both limits are exceeded: workloads that lose their last place, and their share in percent."""

    max_removals: int = 10
    max_removals_percent: float = 20.0


class ForgeConfig(NamedTuple):
    """Where clusters report as commit statuses: `type` is github, gitlab or gitea, `context` has {cluster} in it, `token_from` names an
    environment variable or a file."""

    type: str
    repository: str
    url: str = ""
    context: str = "{cluster}"
    token_from: Mapping[str, str] = {}


class ObservationConfig(NamedTuple):
    """How metrics are asked for. `on_failure` is hold or exclude; `timeout` is for all providers together, in seconds."""

    on_failure: str = "hold"
    timeout: float = 20.0
    statuses: ForgeConfig | None = None


class Config(NamedTuple):
    """All settings; `notifications` are as written."""

    source: SourceConfig = SourceConfig()
    output: OutputConfig = OutputConfig()
    karmada: KarmadaConfig = KarmadaConfig()
    krake: KrakeConfig = KrakeConfig()
    knative: KnativeConfig = KnativeConfig()
    workloads: tuple[WorkloadKind, ...] = ()
    kinds: tuple[KindScope, ...] = ()
    guard: GuardConfig = GuardConfig()
    observations: ObservationConfig = ObservationConfig()
    notifications: tuple[Mapping[str, Any], ...] = ()


def parse_config(spec: Mapping[str, Any]) -> Config:
    """The settings that a spec makes, with the default of everything it leaves out.

    Unknown members are passed over; SettingError, a ValueError, has the pointer of a member with a wrong type or value.
    """
    root = ConfigSection(spec)
    source = root.get_section("source")
    return Config(
        source=SourceConfig(source.get_string("branch"), source.get_strings("paths"), source.get_strings("ignore")),
        output=_parse_output(root.get_section("output")),
        karmada=_parse_karmada(root.get_section("karmada")),
        krake=_parse_krake(root.get_section("krake")),
        knative=_parse_knative(root.get_section("knative")),
        workloads=tuple(_parse_workload(entry) for entry in root.list_sections("workloads")),
        kinds=tuple(_parse_kind(entry) for entry in root.list_sections("kinds")),
        guard=_parse_guard(root.get_section("guard")),
        observations=_parse_observations(root.get_section("observations")),
        notifications=tuple(entry.values for entry in root.list_sections("notifications")),
    )


def check_config(body: Body) -> Iterator[Issue]:
    """What a schema cannot say about a Config."""
    try:
        config = parse_config(body.get("spec") or {})
        if config.notifications:
            told = (
                "'notifications' does nothing: statuses are asked for by `gitsched watch --status`, comments by `gitsched comment`"
            )
            yield Issue("warning", "unknown-field", told, ("spec", "notifications"))
    except SettingError as error:
        yield Issue("error", "invalid-config", f"{'.'.join(map(str, error.pointer))} {error.message}", error.pointer)


def check_branch_name(name: str) -> str:
    """Why a name cannot be that of a branch to write, or ""; it may begin with refs/heads/."""
    short = name.removeprefix("refs/heads/")
    if short.startswith("origin/"):
        return f"the branch's own name, without its remote: {short.removeprefix('origin/')}"
    if short.startswith("refs/") or short in ("HEAD", "@") or len(name) > 250 or not _BRANCH.fullmatch(short):
        return "the name of a branch, such as placements"
    return ""


def _parse_output(output: ConfigSection) -> OutputConfig:
    default, author, signing = OutputConfig(), output.get_section("author"), output.get_section("signing")
    return OutputConfig(
        branch=_parse_branch(output, default.branch),
        repository=output.get_string("repository"),
        push=None if output.values.get("push") is None else output.get_bool("push", False),
        path=_parse_directory(output, "path"),
        retire_after=output.get_duration("retireAfter", default.retire_after),
        author=AuthorConfig(author.get_string("name", default.author.name), author.get_string("email", default.author.email)),
        signing=SigningConfig(signing.get_choice("format", "ssh", "gpg"), _require_string(signing, "key"))
        if signing.values
        else None,
        commit_subject=output.get_string("commitSubject"),
    )


def _parse_branch(output: ConfigSection, default: str) -> str:
    name = output.get_string("branch", default)
    wanted = check_branch_name(name)
    return output.reject("branch", wanted) if wanted else name


def _parse_directory(section: ConfigSection, name: str) -> str:
    """A directory below a root, without the parts that say nothing; "" for the root itself."""
    parts = [part for part in section.get_string(name).split("/") if part not in ("", ".")]
    # The same names that the writer of the output tree refuses, and a depth that leaves room below.
    if len(parts) > 20 or any(not _DIRECTORY.fullmatch(part) for part in parts):
        section.reject(name, "a directory below the root, such as fleet or out/fleet, without .. and .git")
    return "/".join(parts)


def _parse_karmada(karmada: ConfigSection) -> KarmadaConfig:
    default = KarmadaConfig()
    return KarmadaConfig(
        taint_eviction=karmada.get_bool("taintEviction", default.taint_eviction),
        allow_no_execute_taint_policy=karmada.get_bool("allowNoExecuteTaintPolicy", default.allow_no_execute_taint_policy),
        missing_facts=karmada.get_choice("missingFacts", "assume", "strict"),
        eviction_purge_mode=karmada.get_choice("evictionPurgeMode", "Gracefully", "Directly"),
        graceful_eviction_timeout=karmada.get_duration("gracefulEvictionTimeout", default.graceful_eviction_timeout),
        enable_empty_workload_propagation=karmada.get_bool("enableEmptyWorkloadPropagation", False),
        preemption=karmada.get_bool("preemption", default.preemption),
        failback=_parse_failback(karmada),
    )


def _parse_failback(karmada: ConfigSection) -> FailbackConfig:
    if not isinstance(karmada.values.get("failback"), Mapping):
        return FailbackConfig(karmada.get_choice("failback", "Never", "OnRebalance"))
    failback = karmada.get_section("failback")
    if failback.values.get("AfterStabilization") is None:
        failback.reject("AfterStabilization", "a duration such as 10m or 24h")
    return FailbackConfig("AfterStabilization", failback.get_duration("AfterStabilization", timedelta()))


def _parse_krake(krake: ConfigSection) -> KrakeConfig:
    default = KrakeConfig()
    return KrakeConfig(
        _parse_seconds(krake, "rescheduleAfter", default.reschedule_after),
        krake.get_number("stickiness", default.stickiness),
        krake.get_choice("stickinessFormula", "document", "krake"),
        krake.get_choice("metricConstraints", "weighted", "normalised", "raw"),
    )


def _parse_observations(observations: ConfigSection) -> ObservationConfig:
    timeout = observations.get_number("timeout", ObservationConfig().timeout)
    if not 0 < timeout <= 600:
        observations.reject("timeout", "a number of seconds, more than 0 and at most 600")
    return ObservationConfig(
        observations.get_choice("onFailure", "hold", "exclude"), timeout, _parse_forge(observations.get_section("statuses"))
    )


def _parse_forge(statuses: ConfigSection) -> ForgeConfig | None:
    if "repository" not in statuses.values:
        return None  # the schema wants it where there is anything else
    kind, url = statuses.get_choice("forge", "github", "gitlab", "gitea"), statuses.get_string("url")
    if kind == "gitea" and not url:
        statuses.reject("url", "the address of the server")
    context = statuses.get_string("context", "{cluster}")
    if context.count("{cluster}") != 1:
        statuses.reject("context", "a text with {cluster} in it, once")
    place = statuses.get_section("tokenFrom")
    tokens = {name: place.get_string(name) for name in ("env", "file") if place.get_string(name)}
    return ForgeConfig(kind, _require_string(statuses, "repository"), url, context, tokens)


def _parse_seconds(section: ConfigSection, name: str, default: timedelta) -> timedelta:
    seconds = section.get_number(name, default.total_seconds())
    if seconds > timedelta.max.total_seconds() // 2:
        section.reject(name, "a number of seconds that a calendar can hold")
    return timedelta(seconds=seconds)


def _parse_knative(knative: ConfigSection) -> KnativeConfig:
    return KnativeConfig(
        capacity=knative.get_integer("capacity", None, 1),
        policy=knative.get_choice("policy", "", "MAXFILLUP"),
        scale_up=knative.get_choice("scaleUp", "keep", "replace"),
        cluster=knative.get_string("cluster"),
        stateful_set=knative.get_string("statefulSet"),
        autoscaler=_parse_autoscaler(knative.get_section("autoscaler")),
        sources=tuple(
            VpodKind(_require_string(entry, "apiVersion"), _require_string(entry, "kind"), _require_string(entry, "replicasPath"))
            for entry in knative.list_sections("sources")
        ),
        reserved=_parse_reserved(knative.get_section("reserved")),
    )


def _parse_autoscaler(autoscaler: ConfigSection) -> AutoscalerConfig:
    default = AutoscalerConfig()
    age = autoscaler.values.get("lastCompactAgeSeconds")
    return AutoscalerConfig(
        attempt_scale_down=autoscaler.get_bool("attemptScaleDown", default.attempt_scale_down),
        leader=autoscaler.get_bool("leader", default.leader),
        skip=autoscaler.get_bool("skip", default.skip),
        refresh_period=_parse_seconds(autoscaler, "refreshPeriodSeconds", default.refresh_period),
        compact_age=None if age is None else _parse_seconds(autoscaler, "lastCompactAgeSeconds", timedelta()),
    )


def _parse_reserved(reserved: ConfigSection) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for name in sorted(reserved.values):
        pods = reserved.get_section(name)
        table[name] = {pod: pods.get_integer(pod, 0, 0) or 0 for pod in sorted(pods.values)}
    return table


def _parse_workload(entry: ConfigSection) -> WorkloadKind:
    return WorkloadKind(
        _require_string(entry, "apiVersion"),
        _require_string(entry, "kind"),
        entry.get_string("replicasPath"),
        entry.get_string("podTemplatePath"),
    )


def _parse_kind(entry: ConfigSection) -> KindScope:
    scope = entry.get_choice("scope", "", "Namespaced", "Cluster") or entry.reject("scope", "Namespaced or Cluster")
    return KindScope(_require_string(entry, "apiVersion"), _require_string(entry, "kind"), scope == "Namespaced")


def _parse_guard(guard: ConfigSection) -> GuardConfig:
    default = GuardConfig()
    removals = guard.get_integer("maxRemovals", default.max_removals, 0)
    percent = guard.get_number("maxRemovalsPercent", default.max_removals_percent)
    return GuardConfig(default.max_removals if removals is None else removals, percent)


def _require_string(section: ConfigSection, name: str) -> str:
    return section.get_string(name) or section.reject(name, "a string that is not empty")
