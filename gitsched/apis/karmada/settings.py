"""The section `karmada` of gitsched.yaml: Karmada's settings, their defaults and their parser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from gitsched.apis.gitsched.config_section import ConfigSection, SettingsSection
from gitsched.apis.karmada.names import SPREAD_FIELD, TAINT_POLICY_NO_EXECUTE
from gitsched.named_tuples import NamedTuple


class FailbackConfig(NamedTuple):
    """When a workload returns to an earlier affinity group. Each mode includes those before it: Never, OnRebalance, WhenUnschedulable,
    AfterStabilization; `after` is for the last."""

    mode: str = "Never"
    after: timedelta = timedelta()

    @property
    def returns_unplaced_workloads(self) -> bool:
        """Whether a workload that neither the group in use nor a later one can run returns to an earlier group."""
        return self.mode in ("WhenUnschedulable", "AfterStabilization")


class FeatureGates(NamedTuple):
    """Features of Karmada that are off unless a gate switches them on. The names are those of Karmada's gates."""

    overcommit_protection: bool = False
    workload_affinity: bool = False
    components: bool = False
    quota: bool = False


GATES = ("SchedulingOvercommitProtection", "WorkloadAffinity", "MultiplePodTemplatesScheduling", "FederatedQuotaEnforcement")


class KarmadaConfig(NamedTuple):
    """Settings of the Karmada API; the defaults are those of gitsched, not of Karmada. `in_flight` is what a scheduler has in its memory of
    what it placed, as the pure API gives it; None if the bindings show it. `preserve_on_move` says whether preserveResourcesOnDeletion
    counts where a workload leaves a cluster; None if nobody has decided that: it does not, and each such workload has a finding."""

    taint_eviction: bool = True
    allow_no_execute_taint_policy: bool = False
    missing_facts: str = "assume"
    eviction_purge_mode: str = "Gracefully"
    graceful_eviction_timeout: timedelta = timedelta(minutes=10)
    enable_empty_workload_propagation: bool = False
    preemption: bool = False
    failback: FailbackConfig = FailbackConfig()
    failover: str = "none"
    autoscaler_limits: str = "keep"
    preserve_on_move: bool | None = None
    overcommit_protection: bool = True
    strict_spread: bool = False
    gates: FeatureGates = FeatureGates()
    in_flight: tuple[Mapping[str, object], ...] | None = None


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
        failover=_parse_failover(karmada),
        autoscaler_limits=karmada.get_choice("autoscalerLimits", "keep", "divide"),
        preserve_on_move=None if karmada.values.get("preserveOnMove") is None else karmada.get_bool("preserveOnMove", False),
        strict_spread=karmada.get_choice("spread", "upstream", "strict") == "strict",
        overcommit_protection=karmada.get_bool("overcommitProtection", default.overcommit_protection),
        gates=_parse_gates(karmada),
        in_flight=tuple(entry.values for entry in karmada.list_sections("inFlight")) if "inFlight" in karmada.values else None,
    )


def _parse_gates(karmada: ConfigSection) -> FeatureGates:
    gates = karmada.get_section("featureGates")
    for name in gates.values:
        if name not in GATES:
            gates.reject(str(name), f"left out: the gates are {', '.join(GATES)}")
    found = FeatureGates(*(gates.get_bool(name, False) for name in GATES))
    return found._replace(quota=True) if karmada.get_bool("quotaEnforcement", False) else found


def _parse_failback(karmada: ConfigSection) -> FailbackConfig:
    if not isinstance(karmada.values.get("failback"), Mapping):
        return FailbackConfig(karmada.get_choice("failback", "Never", "OnRebalance", "WhenUnschedulable"))
    failback = karmada.get_section("failback")
    if failback.values.get("AfterStabilization") is None:
        failback.reject("AfterStabilization", "a duration such as 10m or 24h")
    return FailbackConfig("AfterStabilization", failback.get_duration("AfterStabilization", timedelta()))


def _parse_failover(karmada: ConfigSection) -> str:
    failover = karmada.get_choice("failover", "none", "cluster")
    if failover == "cluster" and not karmada.get_bool("taintEviction", True):
        karmada.reject(
            "failover", "'none' while taintEviction is false, because the taints of a cluster that is not ready would evict nothing"
        )
    return failover


SETTINGS = SettingsSection(
    "karmada",
    KarmadaConfig(),
    _parse_karmada,
    ignored_codes={"allow_no_execute_taint_policy": TAINT_POLICY_NO_EXECUTE, "strict_spread": SPREAD_FIELD},
)
