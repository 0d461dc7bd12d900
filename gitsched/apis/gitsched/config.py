"""The settings of gitsched: the `spec` of gitsched.yaml, and the `config` of the Python API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from gitsched.apis.gitsched.reading import Section, SettingError
from gitsched.model.document import Body
from gitsched.model.issue import Issue

GROUP, VERSION, KIND = "gitsched.io", "v1alpha1", "Config"
FILE = "gitsched.yaml"
_BRANCH = re.compile(r"(?!.*(?://|\.\.|@\{|/\.|\.lock(?:/|$)))[^-./\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*(?<![/.])")
"""The rules of git-check-ref-format."""
_DIRECTORY = re.compile(r"(?!\.\.$)(?!\.git)[\w.][\w.-]{0,99}", re.IGNORECASE)


class Source(NamedTuple):
    """`branch` is "" for the one HEAD names; no `paths` means the whole repository; `ignore` is written as in .gitignore."""

    branch: str = ""
    paths: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class Author(NamedTuple):
    """Who the commits of the output branch are from."""

    name: str = "gitsched"
    email: str = "gitsched@localhost"


class Signing(NamedTuple):
    """`format` is ssh or gpg; `key` is the path of an ssh key, or the id of a gpg key."""

    format: str
    key: str


class Output(NamedTuple):
    """`repository` is "" for the source itself; `push` is None for "when the repository is a remote one"."""

    branch: str = "placements"
    repository: str = ""
    push: bool | None = None
    path: str = ""
    retire_after: timedelta = timedelta(hours=24)
    author: Author = Author()
    signing: Signing | None = None
    commit_subject: str = ""


class Failback(NamedTuple):
    """`mode` is Never, OnRebalance or AfterStabilization; `after` counts for the last one only."""

    mode: str = "Never"
    after: timedelta = timedelta()


class Karmada(NamedTuple):
    """How Karmada's policies are read; gitsched's own defaults, not upstream's."""

    taint_eviction: bool = True
    allow_no_execute_taint_policy: bool = False
    missing_facts: str = "assume"
    eviction_purge_mode: str = "Gracefully"
    graceful_eviction_timeout: timedelta = timedelta(minutes=10)
    enable_empty_workload_propagation: bool = False
    preemption: bool = False
    failback: Failback = Failback()


class Krake(NamedTuple):
    """`stickiness` is a weight; `stickiness_formula` is document or krake; `metric_constraints` says what they look at: weighted,
    normalised or raw values."""

    reschedule_after: timedelta = timedelta(seconds=60)
    stickiness: float = 0.1
    stickiness_formula: str = "document"
    metric_constraints: str = "weighted"


class Autoscaler(NamedTuple):
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


class Knative(NamedTuple):
    """`capacity` counts vreplicas a pod, None while nobody said; `scale_up` is keep or replace. `stateful_set` is "", a name, or
    namespace/name. `reserved` are vreplicas promised but not in a status yet, by source (namespace/name) and pod."""

    capacity: int | None = None
    policy: str = ""
    scale_up: str = "keep"
    cluster: str = ""
    stateful_set: str = ""
    autoscaler: Autoscaler = Autoscaler()
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


class Guard(NamedTuple):
    """A commit is refused when both limits are exceeded: workloads that lose their last place, and their share in percent."""

    max_removals: int = 10
    max_removals_percent: float = 20.0


class Forge(NamedTuple):
    """Where clusters report as commit statuses: `type` is github, gitlab or gitea, `context` has {cluster} in it, `token_from` names an
    environment variable or a file."""

    type: str
    repository: str
    url: str = ""
    context: str = "{cluster}"
    token_from: Mapping[str, str] = {}


class Observing(NamedTuple):
    """How metrics are asked for. `on_failure` is hold or exclude; `timeout` is for all providers together, in seconds."""

    on_failure: str = "hold"
    timeout: float = 20.0
    statuses: Forge | None = None


class Config(NamedTuple):
    """All settings; `notifications` are as written."""

    source: Source = Source()
    output: Output = Output()
    karmada: Karmada = Karmada()
    krake: Krake = Krake()
    knative: Knative = Knative()
    workloads: tuple[WorkloadKind, ...] = ()
    kinds: tuple[KindScope, ...] = ()
    guard: Guard = Guard()
    observations: Observing = Observing()
    notifications: tuple[Mapping[str, Any], ...] = ()


def parse_config(spec: Mapping[str, Any]) -> Config:
    """The settings that a spec makes, with the default of everything it leaves out.

    Unknown members are passed over; SettingError, a ValueError, has the pointer of a member with a wrong type or value.
    """
    root = Section(spec)
    source = root.section("source")
    return Config(
        source=Source(source.text("branch"), source.texts("paths"), source.texts("ignore")),
        output=_parse_output(root.section("output")),
        karmada=_parse_karmada(root.section("karmada")),
        krake=_parse_krake(root.section("krake")),
        knative=_parse_knative(root.section("knative")),
        workloads=tuple(_parse_workload(entry) for entry in root.sections("workloads")),
        kinds=tuple(_parse_kind(entry) for entry in root.sections("kinds")),
        guard=_parse_guard(root.section("guard")),
        observations=_parse_observing(root.section("observations")),
        notifications=tuple(entry.values for entry in root.sections("notifications")),
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


def judge_branch(name: str) -> str:
    """Why a name cannot be that of a branch to write, or ""; it may begin with refs/heads/."""
    short = name.removeprefix("refs/heads/")
    if short.startswith("origin/"):
        return f"the branch's own name, without its remote: {short.removeprefix('origin/')}"
    if short.startswith("refs/") or short in ("HEAD", "@") or len(name) > 250 or not _BRANCH.fullmatch(short):
        return "the name of a branch, such as placements"
    return ""


def _parse_output(output: Section) -> Output:
    default, author, signing = Output(), output.section("author"), output.section("signing")
    return Output(
        branch=_parse_branch(output, default.branch),
        repository=output.text("repository"),
        push=None if output.values.get("push") is None else output.flag("push", False),
        path=_parse_directory(output, "path"),
        retire_after=output.duration("retireAfter", default.retire_after),
        author=Author(author.text("name", default.author.name), author.text("email", default.author.email)),
        signing=Signing(signing.choice("format", "ssh", "gpg"), _need(signing, "key")) if signing.values else None,
        commit_subject=output.text("commitSubject"),
    )


def _parse_branch(output: Section, default: str) -> str:
    name = output.text("branch", default)
    wanted = judge_branch(name)
    return output.refuse("branch", wanted) if wanted else name


def _parse_directory(section: Section, name: str) -> str:
    """A directory below a root, without the parts that say nothing; "" for the root itself."""
    parts = [part for part in section.text(name).split("/") if part not in ("", ".")]
    # The same names that the writer of the output tree refuses, and a depth that leaves room below.
    if len(parts) > 20 or any(not _DIRECTORY.fullmatch(part) for part in parts):
        section.refuse(name, "a directory below the root, such as fleet or out/fleet, without .. and .git")
    return "/".join(parts)


def _parse_karmada(karmada: Section) -> Karmada:
    default = Karmada()
    return Karmada(
        taint_eviction=karmada.flag("taintEviction", default.taint_eviction),
        allow_no_execute_taint_policy=karmada.flag("allowNoExecuteTaintPolicy", default.allow_no_execute_taint_policy),
        missing_facts=karmada.choice("missingFacts", "assume", "strict"),
        eviction_purge_mode=karmada.choice("evictionPurgeMode", "Gracefully", "Directly"),
        graceful_eviction_timeout=karmada.duration("gracefulEvictionTimeout", default.graceful_eviction_timeout),
        enable_empty_workload_propagation=karmada.flag("enableEmptyWorkloadPropagation", False),
        preemption=karmada.flag("preemption", default.preemption),
        failback=_parse_failback(karmada),
    )


def _parse_failback(karmada: Section) -> Failback:
    if not isinstance(karmada.values.get("failback"), Mapping):
        return Failback(karmada.choice("failback", "Never", "OnRebalance"))
    failback = karmada.section("failback")
    if failback.values.get("AfterStabilization") is None:
        failback.refuse("AfterStabilization", "a duration such as 10m or 24h")
    return Failback("AfterStabilization", failback.duration("AfterStabilization", timedelta()))


def _parse_krake(krake: Section) -> Krake:
    default = Krake()
    return Krake(
        _parse_seconds(krake, "rescheduleAfter", default.reschedule_after),
        krake.number("stickiness", default.stickiness),
        krake.choice("stickinessFormula", "document", "krake"),
        krake.choice("metricConstraints", "weighted", "normalised", "raw"),
    )


def _parse_observing(observations: Section) -> Observing:
    timeout = observations.number("timeout", Observing().timeout)
    if not 0 < timeout <= 600:
        observations.refuse("timeout", "a number of seconds, more than 0 and at most 600")
    return Observing(observations.choice("onFailure", "hold", "exclude"), timeout, _parse_forge(observations.section("statuses")))


def _parse_forge(statuses: Section) -> Forge | None:
    if "repository" not in statuses.values:
        return None  # the schema wants it where there is anything else
    kind, url = statuses.choice("forge", "github", "gitlab", "gitea"), statuses.text("url")
    if kind == "gitea" and not url:
        statuses.refuse("url", "the address of the server")
    context = statuses.text("context", "{cluster}")
    if context.count("{cluster}") != 1:
        statuses.refuse("context", "a text with {cluster} in it, once")
    place = statuses.section("tokenFrom")
    tokens = {name: place.text(name) for name in ("env", "file") if place.text(name)}
    return Forge(kind, _need(statuses, "repository"), url, context, tokens)


def _parse_seconds(section: Section, name: str, default: timedelta) -> timedelta:
    seconds = section.number(name, default.total_seconds())
    if seconds > timedelta.max.total_seconds() // 2:
        section.refuse(name, "a number of seconds that a calendar can hold")
    return timedelta(seconds=seconds)


def _parse_knative(knative: Section) -> Knative:
    return Knative(
        capacity=knative.whole("capacity", None, 1),
        policy=knative.choice("policy", "", "MAXFILLUP"),
        scale_up=knative.choice("scaleUp", "keep", "replace"),
        cluster=knative.text("cluster"),
        stateful_set=knative.text("statefulSet"),
        autoscaler=_parse_autoscaler(knative.section("autoscaler")),
        sources=tuple(
            VpodKind(_need(entry, "apiVersion"), _need(entry, "kind"), _need(entry, "replicasPath"))
            for entry in knative.sections("sources")
        ),
        reserved=_parse_reserved(knative.section("reserved")),
    )


def _parse_autoscaler(autoscaler: Section) -> Autoscaler:
    default = Autoscaler()
    age = autoscaler.values.get("lastCompactAgeSeconds")
    return Autoscaler(
        attempt_scale_down=autoscaler.flag("attemptScaleDown", default.attempt_scale_down),
        leader=autoscaler.flag("leader", default.leader),
        skip=autoscaler.flag("skip", default.skip),
        refresh_period=_parse_seconds(autoscaler, "refreshPeriodSeconds", default.refresh_period),
        compact_age=None if age is None else _parse_seconds(autoscaler, "lastCompactAgeSeconds", timedelta()),
    )


def _parse_reserved(reserved: Section) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for name in sorted(reserved.values):
        pods = reserved.section(name)
        table[name] = {pod: pods.whole(pod, 0, 0) or 0 for pod in sorted(pods.values)}
    return table


def _parse_workload(entry: Section) -> WorkloadKind:
    return WorkloadKind(_need(entry, "apiVersion"), _need(entry, "kind"), entry.text("replicasPath"), entry.text("podTemplatePath"))


def _parse_kind(entry: Section) -> KindScope:
    scope = entry.choice("scope", "", "Namespaced", "Cluster") or entry.refuse("scope", "Namespaced or Cluster")
    return KindScope(_need(entry, "apiVersion"), _need(entry, "kind"), scope == "Namespaced")


def _parse_guard(guard: Section) -> Guard:
    default = Guard()
    removals = guard.whole("maxRemovals", default.max_removals, 0)
    percent = guard.number("maxRemovalsPercent", default.max_removals_percent)
    return Guard(default.max_removals if removals is None else removals, percent)


def _need(section: Section, name: str) -> str:
    return section.text(name) or section.refuse(name, "a string that is not empty")
