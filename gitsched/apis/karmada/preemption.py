"""Policies that take over what another policy has claimed (spec/karmada.md §2), where `karmada.preemption` allows it.

Upstream acts when a policy or its priority changes. Here the same rules are asked on every run, so it makes no difference whether a
policy was raised, its rival lowered, or both came in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.karmada.policy import Policy
from gitsched.model.finding import Finding, locate


def preempt(claimed: Policy, naming: Iterable[Policy]) -> Policy:
    """Who governs a workload that a policy has claimed: the one that preempts it, else the claimer itself.

    `naming` are the policies that select it by name. Of several that may preempt the highest priority wins, then the first name.
    """
    rivals = [policy for policy in naming if _may_preempt(policy, claimed)]
    return min(rivals, key=lambda policy: (not policy.namespaced, -policy.priority, policy.key.name), default=claimed)


def find_idle_preemption(policies: Iterable[Policy], enabled: bool) -> list[Finding]:
    """Policies that ask for preemption while nothing allows it."""
    return [
        Finding(
            "info",
            "karmada-preemption-off",
            f"{policy.key.title} asks for preemption, which has no effect: karmada.preemption is not true in gitsched.yaml",
            locate(policy.document),
            policy.key.resource,
        )
        for policy in policies
        if not enabled and policy.spec.get("preemption") == "Always"
    ]


def _may_preempt(policy: Policy, claimed: Policy) -> bool:
    if policy.spec.get("preemption") != "Always" or policy.key == claimed.key:
        return False
    if policy.namespaced != claimed.namespaced:
        return policy.namespaced
    return policy.priority > claimed.priority
