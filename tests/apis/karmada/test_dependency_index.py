"""What a workload brings along through other objects: an index that is updated is equal to a new one, also with circles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.dependencies.dependency_index import DependencyIndex
from gitsched.apis.karmada.dependencies.references import DependentObjectReference, read_references
from gitsched.model.document import Body, Document, Key, parse_api_group

NAMES = ("a", "b", "c")


class Reader:
    """Reads references as the engine does; the HelmReleases a and b have propagateDeps."""

    def read_references(self, template: Document, /) -> tuple[DependentObjectReference, ...]:
        return read_references(template)

    def propagates(self, template: Document, /) -> bool:
        return template.key.kind == "HelmRelease" and template.key.name in ("a", "b")


def make(version: str, kind: str, name: str, spec: Body) -> Document:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "apps"}, "spec": spec}
    return Document(Key(parse_api_group(version), kind, "apps", name), version, body)


def make_release(name: str, source: str, depends: list[str]) -> Document:
    spec = {"chartRef": {"kind": "OCIRepository", "name": source}, "dependsOn": [{"name": other} for other in depends]}
    return make("helm.toolkit.fluxcd.io/v2", "HelmRelease", name, spec)


names = st.sampled_from(NAMES)
documents = st.one_of(
    st.builds(make_release, names, names, st.lists(names, max_size=2)),
    st.builds(
        lambda name, secret: make("source.toolkit.fluxcd.io/v1", "OCIRepository", name, {"secretRef": {"name": secret}}),
        names,
        names,
    ),
    st.builds(
        lambda name, store, target: make(
            "external-secrets.io/v1",
            "ExternalSecret",
            name,
            {"secretStoreRef": {"name": store}, "target": {"name": target} if target else {}},
        ),
        names,
        names,
        st.sampled_from(("", *NAMES)),
    ),
    st.builds(
        lambda name, secret: make(
            "external-secrets.io/v1", "SecretStore", name, {"provider": {"vault": {"auth": {"tokenSecretRef": {"name": secret}}}}}
        ),
        names,
        names,
    ),
    st.builds(lambda name: make("bitnami.com/v1alpha1", "SealedSecret", name, {}), names),
)


def list_all(index: DependencyIndex, templates: dict[Key, Document]) -> dict[Key, list[Key]]:
    return {key: index.list_dependents(template) for key, template in templates.items()}


@given(st.lists(documents, min_size=1, max_size=12), st.lists(documents, max_size=5))
def test_an_updated_index_is_equal_to_a_new_one(first: list[Document], changes: list[Document]) -> None:
    templates = {document.key: document for document in first}
    index = DependencyIndex(templates, Reader())
    for change in changes:
        if change.key not in templates:
            continue  # a commit that adds an object is planned with a new index
        before = list_all(index, templates)
        templates = {**templates, change.key: change}
        touched = index.update([change.key], templates, Reader())
        fresh = DependencyIndex(templates, Reader())
        after = list_all(index, templates)
        assert after == list_all(fresh, templates)
        assert index.references == fresh.references
        assert {key for key in templates if before[key] != after[key]} <= touched | {change.key}


@given(st.lists(documents, min_size=1, max_size=12))
def test_no_two_objects_are_dependents_of_each_other(documents: list[Document]) -> None:
    templates = {document.key: document for document in documents}
    found = list_all(DependencyIndex(templates, Reader()), templates)
    assert not [(key, other) for key, dependents in found.items() for other in dependents if key in found.get(other, ())]
    decided: set[Key] = set()

    def decide(key: Key, waiting: tuple[Key, ...] = ()) -> None:
        assert key not in waiting, "a circle has no order"
        for other in found[key] if key not in decided else ():
            decide(other, (*waiting, key))
        decided.add(key)

    for key in found:
        decide(key)
