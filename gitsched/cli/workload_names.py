"""Names of workloads and clusters on the command line, as for kubectl: KIND/NAME or KIND/NAMESPACE/NAME, with plurals and short names of
kinds, or a name alone."""

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


ParsedName = tuple[str, str | None, str]
"""Kind, namespace and name; the kind is "" and the namespace None where they are not given."""
_CLUSTER_WORDS = frozenset(("cluster", "clusters", "managedcluster", "managedclusters"))


def parse_words(words: Sequence[str], namespace: str | None) -> ParsedName:
    """Return what the words of one object say: KIND/NAME, KIND/NAMESPACE/NAME, KIND NAME, NAMESPACE/NAME or NAME.

    Of two parts, the first is returned as the kind also where it may be a namespace.
    """
    parts = [part for word in words for part in word.split("/")]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise click.UsageError(f"invalid workload {' '.join(words)!r}: expected NAME, KIND NAME, KIND/NAME or KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in (None, parts[1]):
        raise click.UsageError(f"-n {namespace} and {' '.join(words)!r} name different namespaces")
    return parse_kind(parts[0]) if len(parts) > 1 else "", parts[1] if len(parts) == 3 else namespace, parts[-1]


def parse_workloads(words: Sequence[str], namespace: str | None) -> list[ParsedName]:
    """Return what several workloads are called. As for kubectl, a kind before names without a slash is that of each of them."""
    kind, *names = words
    if names and is_kind(kind) and not any("/" in word for word in words):
        return [parse_words((kind, name), namespace) for name in names]
    return [parse_words((word,), namespace) for word in words]


def parse_clusters(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names of clusters, which may follow `cluster/` or the word `cluster`."""
    if len(words) > 1 and words[0].lower() in _CLUSTER_WORDS:
        words = words[1:]
    return tuple(
        name if kind.lower() in _CLUSTER_WORDS and name else word for word in words for kind, _, name in [word.partition("/")]
    )


def parse_pattern(words: Sequence[str]) -> str:
    """Return a pattern of workloads, [KIND/][NAMESPACE/]NAME with * and ?, with the full name of a kind that is known."""
    first, *rest = [part for word in words for part in word.split("/")] or [""]
    return "/".join((parse_kind(first) if rest and is_kind(first) else first, *rest))


def is_kind(word: str) -> bool:
    """Return whether a word is a kind that is known, or one as manifests write it; names and namespaces are in lower case."""
    return parse_kind(word) != word or word != word.lower()


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
