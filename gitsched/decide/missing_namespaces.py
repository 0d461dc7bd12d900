"""Report objects that clusters get without a namespace, because kustomize builds them so, or because SOPS encrypted them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitsched.model.document import Document, Key, is_encrypted
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.variants import WorkloadVariants
from gitsched.render.output_files import is_namespace_added, lacks_namespace

NAMESPACE_MISSING = "namespace-missing"
_MAX_NAMES = 5


def find_missing_namespace(document: Document, outcome: Outcome) -> Iterator[Finding]:
    """Yield a warning if clusters get a document that stays without a namespace."""
    return _make_findings(document.key, (document,) if outcome.targets and outcome.manifests is None else ())


def find_missing_namespaces(bundle: Key, outcome: Outcome, variants: WorkloadVariants) -> Iterator[Finding]:
    """Yield a warning if clusters get objects of a Bundle that stay without a namespace."""
    used = {index for target in outcome.targets if (index := variants.by_cluster.get(target.cluster)) is not None}
    return _make_findings(bundle, (document for index in sorted(used) for document in variants.variants[index].objects))


def _make_findings(owner: Key, documents: Iterable[Document]) -> Iterator[Finding]:
    by_cause: dict[bool, dict[Key, Document]] = {}
    for document in documents:
        if lacks_namespace(document) and not is_namespace_added(document):
            by_cause.setdefault(is_encrypted(document.body), {})[document.key] = document
    for encrypted, found in sorted(by_cause.items()):
        names = format_names([*map(str, found)], _MAX_NAMES)
        why, cure = (
            ("SOPS encrypted it", "set metadata.namespace with `sops edit`")
            if encrypted
            else ("kustomize builds it", "set `namespace` in the kustomization, or metadata.namespace")
        )
        message = (
            f"{names if owner in found else f'{owner}: {names}'}: delivered without a namespace, as {why}. Flux applies nothing of "
            f"a directory with such an object, unless its Kustomization has a targetNamespace; {cure}"
        )
        yield Finding("warning", NAMESPACE_MISSING, message, locate_document(next(iter(found.values()))), owner.resource)
