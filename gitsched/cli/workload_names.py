"""Names of workloads on the command line, as for kubectl: KIND/NAME or KIND/NAMESPACE/NAME, with plurals and short names of kinds."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gitsched.decide.registry import policy_apis

SHORT_NAMES = {
    "cj": "CronJob",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "netpol": "NetworkPolicy",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pvc": "PersistentVolumeClaim",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""Short names as in kubectl."""
KINDS = (
    *SHORT_NAMES.values(),
    *("Job", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    *(kind for api in policy_apis.values() for kind in api.commands.explained_kinds),
)


def parse_workload(text: str, namespace: str | None) -> tuple[str, str, str]:
    """Return kind, namespace and name; without a namespace it is `default`."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise click.UsageError(f"invalid workload {text!r}: expected KIND/NAME or KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in (None, parts[1]):
        raise click.UsageError(f"-n {namespace} and {text!r} name different namespaces")
    return parse_kind(parts[0]), parts[1] if len(parts) == 3 else namespace or "default", parts[-1]


def parse_words(words: Sequence[str], namespace: str | None) -> tuple[str, str | None, str]:
    """Return kind, namespace and name of what `explain` is given: KIND/NAME, KIND/NAMESPACE/NAME, KIND NAME, NAMESPACE/NAME or NAME. A kind
    that is not given is "", a namespace that is not given None."""
    parts = [part for word in words for part in word.split("/")]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise click.UsageError(f"invalid workload {' '.join(words)!r}: expected NAME, KIND NAME, KIND/NAME or KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in (None, parts[1]):
        raise click.UsageError(f"-n {namespace} and {' '.join(words)!r} name different namespaces")
    return parse_kind(parts[0]) if len(parts) > 1 else "", parts[1] if len(parts) == 3 else namespace, parts[-1]


def parse_kind(text: str) -> str:
    """Return the kind, with its group if given, for a name as in kubectl: a kind, a plural or a short name, as in deployments.apps.

    Unknown names are returned unchanged.
    """
    name, dot, group = text.partition(".")
    lower = name.lower()
    return (_find_short_name(lower) or next((kind for kind in KINDS if lower in _list_spellings(kind)), name)) + dot + group


def _find_short_name(name: str) -> str | None:
    return SHORT_NAMES.get(name) or next(
        (api.commands.short_names[name] for api in policy_apis.values() if name in api.commands.short_names), None
    )


def _list_spellings(kind: str) -> tuple[str, str]:
    singular = kind.lower()
    if singular.endswith("ss"):
        return singular, f"{singular}es"
    return singular, f"{singular[:-1]}ies" if singular.endswith("cy") else f"{singular}s"
