"""Settings of gitsched: the spec of gitsched.yaml, and the config of the Python API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from gitsched.apis.gitsched.config_section import ConfigSection, SettingError, SettingsSection
from gitsched.apis.gitsched.delivery_config import parse_delivery
from gitsched.apis.gitsched.guard_config import GuardConfig, check_guard, parse_guard
from gitsched.apis.gitsched.output_config import OutputConfig, parse_output
from gitsched.apis.gitsched.reserve_config import ReserveConfig, parse_reserve
from gitsched.apis.gitsched.source_config import SourceConfig, parse_source
from gitsched.model.delivery import DeliveryConfig
from gitsched.model.document import Body, parse_api_group
from gitsched.model.finding import Issue
from gitsched.named_tuples import NamedTuple

T = TypeVar("T")

GROUP, VERSION, KIND = "gitsched.io", "v1alpha1", "Config"
FILE = "gitsched.yaml"


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
    reserve: ReserveConfig = ReserveConfig()
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

    @property
    def ignored_codes(self) -> frozenset[str]:
        """The codes of the validation findings that the settings of policy APIs turn off."""
        return frozenset(
            code
            for section in _api_sections
            for name, code in section.ignored_codes.items()
            if getattr(self.settings_of(section), name)
        )


_api_sections: list[SettingsSection[Any]] = []


def add_settings_section(section: SettingsSection[Any]) -> None:
    """Have `parse_config` parse the section of a policy API; called by gitsched.decide.registry.register."""
    _api_sections.append(section)


def parse_config(spec: Mapping[str, Any], *, upstream: bool = False) -> Config:
    """Parse the spec of a Config; missing members have their defaults, or with `upstream` those of the upstream schedulers.

    Unknown members are ignored. Raises SettingError, a ValueError, with the pointer of a member that has a wrong type or value.
    """
    root = ConfigSection(spec)
    source, output = root.get_section("source"), parse_output(root.get_section("output"))
    return Config(
        source=parse_source(source, output.branch),
        output=output,
        delivery=parse_delivery(root.get_section("delivery")),
        api_settings=_parse_api_settings(root, upstream),
        upstream_defaults=_parse_upstream_defaults() if upstream else {},
        workloads=tuple(_parse_workload(entry) for entry in root.list_sections("workloads")),
        kinds=tuple(_parse_kind(entry) for entry in root.list_sections("kinds")),
        assumed=tuple(_parse_assumed(entry) for entry in root.list_sections("assumed")),
        guard=parse_guard(root.get_section("guard"), upstream),
        reserve=parse_reserve(root.get_section("reserve")),
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
