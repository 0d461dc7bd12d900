"""Find the Bundles among documents, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.gitsched.config import KindScope
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Key, get_field, list_objects
from gitsched.model.finding import Finding
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants
from gitsched.named_tuples import NamedTuple
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord


class BundleParts(NamedTuple):
    """The variants of all Bundles and what they are made of.

    `resources` are files whose documents are parts of Bundles, `inputs` those without documents of their own, such as the templates of
    charts. `kinds` are the scopes that CustomResourceDefinitions in Bundles declare. `failed`: there is an error. `dependencies` are all
    files that builds read, and those with values of variables. `used_rules` are the indices of entries of `source.variants` that choose
    documents of delivery tools. `owners` are the Bundles by the files that their variants read, and `unbuilt` those that some
    clusters may not get, because a variant cannot be built or a delivery tool has to build it.
    """

    variants: TemplateVariants = {}
    findings: tuple[Finding, ...] = ()
    resources: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    kinds: tuple[KindScope, ...] = ()
    record: BuildRecord = NOTHING_BUILT
    failed: bool = False
    dependencies: frozenset[str] = frozenset()
    used_rules: frozenset[int] = frozenset()
    owners: Mapping[str, tuple[Key, ...]] = {}
    unbuilt: frozenset[Key] = frozenset()


NO_PARTS = BundleParts()


def has_bundles(documents: Iterable[RawDocument]) -> bool:
    """Return whether a document is a Bundle or contains one."""
    return next(list_bundles(documents), None) is not None


def list_bundles(documents: Iterable[RawDocument]) -> Iterator[RawDocument]:
    """Yield the Bundles among documents and those inside of workloads that consist of several objects, located at the workload."""
    embedded = {kind: path for api in policy_apis.values() for kind, path in api.embedded_objects.items()}
    for raw in documents:
        if raw.broken:
            continue
        if (raw.group, raw.kind) == BUNDLE_KIND:
            yield raw
        elif path := embedded.get((raw.group, raw.kind)):
            for body in list_objects(get_field(raw.body, *path)):
                inner = make_raw_document(body, raw.origin)
                if (inner.group, inner.kind) == BUNDLE_KIND:
                    yield inner._replace(namespace=inner.namespace or raw.namespace)
