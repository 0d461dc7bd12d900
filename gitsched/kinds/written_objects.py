"""Read from a manifest which objects its controller writes: Secrets of ExternalSecrets and Certificates, copies in other namespaces.

A row of the table of kinds names the Secret of most operators; the kinds here have other rules, or are not in the table.
"""

from __future__ import annotations

from typing import Any

from gitsched.kinds.kind import find_values
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Key, get_field, list_objects, parse_api_group

_EVERYWHERE = ""
"""The namespace of objects that a controller writes in every namespace, or in one that the manifest does not name."""
_NAME = "metadata.name"

WRITERS: dict[tuple[str, str], tuple[tuple[str, bool, tuple[str, ...]], ...]] = {
    ("cert-manager.io", "ClusterIssuer"): (("Secret", False, ("spec.acme.privateKeySecretRef.name",)),),
    ("cert-manager.io", "Issuer"): (("Secret", True, ("spec.acme.privateKeySecretRef.name",)),),
    ("external-secrets.io", "ClusterExternalSecret"): (
        ("Secret", False, ("spec.externalSecretSpec.target.name", "spec.externalSecretName", _NAME)),
    ),
    ("isindir.github.com", "SopsSecret"): (("Secret", True, ("spec.secretTemplates[].name",)),),
    ("k8s.bitwarden.com", "BitwardenSecret"): (("Secret", True, ("spec.secretName",)),),
    ("kafka.strimzi.io", "KafkaUser"): (("Secret", True, (_NAME,)),),
    ("objectbucket.io", "ObjectBucketClaim"): (("ConfigMap", True, (_NAME,)), ("Secret", True, (_NAME,))),
    ("onepassword.com", "OnePasswordItem"): (("Secret", True, (_NAME,)),),
    ("ricoberger.de", "VaultSecret"): (("Secret", True, (_NAME,)),),
    ("secretgenerator.mittwald.de", "BasicAuth"): (("Secret", True, (_NAME,)),),
    ("secretgenerator.mittwald.de", "StringSecret"): (("Secret", True, (_NAME,)),),
    ("secrets.doppler.com", "DopplerSecret"): (("Secret", False, ("spec.managedSecret.name",)),),
    ("secrets.hashicorp.com", "HCPVaultSecretsApp"): (("Secret", True, ("spec.destination.name",)),),
    ("secrets.hashicorp.com", "VaultDynamicSecret"): (("Secret", True, ("spec.destination.name",)),),
    ("secrets.hashicorp.com", "VaultPKISecret"): (("Secret", True, ("spec.destination.name",)),),
    ("secrets.hashicorp.com", "VaultStaticSecret"): (("Secret", True, ("spec.destination.name",)),),
    ("secrets.infisical.com", "InfisicalSecret"): (
        ("Secret", False, ("spec.managedSecretReference.secretName", "spec.managedKubeSecretReferences[].secretName")),
    ),
    ("serving.knative.dev", "Service"): (("Service", True, (_NAME,)),),
    ("spv.no", "AzureKeyVaultSecret"): (("Secret", True, ("spec.output.secret.name",)),),
    ("trust.cert-manager.io", "Bundle"): (("ConfigMap", False, (_NAME,)), ("Secret", False, (_NAME,))),
}
"""What the controllers of kinds write: the kind, whether it is in the namespace of the manifest, and the paths of the name; the first path
that the manifest has counts."""

_SERVING_CERTIFICATES = (
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
)
"""Annotations of Services: OpenShift's service CA operator writes a certificate into the Secret of this name."""
_COPY_ANNOTATIONS = (
    "kubed.appscode.com/sync",
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled",
    "replicator.v1.mittwald.de/replicate-to",
    "replicator.v1.mittwald.de/replicate-to-matching",
)
"""Annotations of ConfigMaps and Secrets that operators copy into other namespaces."""
KYVERNO_POLICIES = frozenset({("kyverno.io", "ClusterPolicy"), ("kyverno.io", "Policy")})


def list_written_objects(key: Key, body: Body) -> tuple[Key, ...]:
    """Return the objects that the controller of an object writes; namespace "" stands for every namespace."""
    if not key.group:
        return _list_by_annotations(key, body) if key.kind in ("Service", "ConfigMap", "Secret") else ()
    found: list[Key] = []
    row = find_kind(key.group, key.kind)
    if row is not None and row.secrets:
        from gitsched.kinds.references import find_written_secret  # only for these kinds

        secret = find_written_secret(body, row)
        found += [Key("", "Secret", key.namespace, secret)] if secret else []
    for kind, same_namespace, paths in WRITERS.get(key[:2], ()):
        names = next((names for path in paths if (names := _read_names(body, path))), ())
        found += [Key("", kind, key.namespace if same_namespace else _EVERYWHERE, name) for name in names]
    if key[:2] in KYVERNO_POLICIES:
        found += _list_generated(body)
    return tuple(dict.fromkeys(found))


def may_write(key: Key) -> bool:
    """Return whether the controller of a kind may write an object that others refer to."""
    row = find_kind(key.group, key.kind)
    return key[:2] in WRITERS or key[:2] in KYVERNO_POLICIES or (row is not None and bool(row.secrets))


def _read_names(body: Body, path: str) -> tuple[str, ...]:
    return tuple(value for value in find_values(body, path) if isinstance(value, str) and value)


def _list_by_annotations(key: Key, body: Body) -> tuple[Key, ...]:
    annotations = get_field(body, "metadata", "annotations")
    if not isinstance(annotations, dict) or not annotations:
        return ()
    if key.kind == "Service":
        names = [annotations[name] for name in _SERVING_CERTIFICATES if name in annotations]
        return tuple(Key("", "Secret", key.namespace, name) for name in names if isinstance(name, str) and name)
    copied = any(annotations.get(name, "false") != "false" for name in _COPY_ANNOTATIONS)
    return (key._replace(namespace=_EVERYWHERE),) if copied else ()


def _list_generated(body: Body) -> list[Key]:
    """Return what the rules of a Kyverno policy generate under a fixed name."""
    found: list[Key] = []
    for rule in list_objects(get_field(body, "spec", "rules")):
        generated: Any = rule.get("generate")
        name, kind, version = (get_field(generated, member) for member in ("name", "kind", "apiVersion"))
        if isinstance(name, str) and isinstance(kind, str) and isinstance(version, str) and name and "{{" not in name:
            found.append(Key(parse_api_group(version), kind, _EVERYWHERE, name))
    return found
