"""Whatever changes about some objects, in any order: relations that are brought up to date equal those that are computed from nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import AssumedObject, Config
from gitsched.decide.relations.object_facts import FactReader, ObjectFacts
from gitsched.decide.relations.plan_relations import FactChanges, PlanRelations
from gitsched.decide.relations.schema import MISSING, PLACEMENT, REPORTED_COUNT, SEPARATED_COUNT, TARGETS, UNSELECTED_COUNT
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import EPOCH
from gitsched.query import MemoryStore
from tests.search_depth import count_examples

NAMES, NAMESPACES, CLUSTERS = ("a", "b"), ("shop", "ops"), ("ash", "bru", "oak")
RESULTS = (MISSING, TARGETS, PLACEMENT, REPORTED_COUNT, SEPARATED_COUNT, UNSELECTED_COUNT)
Body = dict[str, Any]


def make_body(kind: str, name: str, other: str, far: str) -> Body:
    """Return a body that refers to, selects, writes, defines or binds an object called `other`."""
    pod = {
        "metadata": {"labels": {"app": other}},
        "spec": {
            "serviceAccountName": other,
            "containers": [{"name": "c", "args": [f"--secret={name}"], "envFrom": [{"secretRef": {"name": other}}]}],
            "volumes": [{"name": "v", "configMap": {"name": other}}],
        },
    }
    bodies: dict[str, Body] = {
        "Deployment": {"apiVersion": "apps/v1", "spec": {"template": pod}},
        "Service": {"apiVersion": "v1", "spec": {"selector": {"app": other}}},
        "Ingress": {"apiVersion": "networking.k8s.io/v1", "spec": {"defaultBackend": {"service": {"name": other}}}},
        "HTTPRoute": {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "spec": {"rules": [{"backendRefs": [{"name": other, "namespace": far}]}]},
        },
        "ServiceMonitor": {
            "apiVersion": "monitoring.coreos.com/v1",
            "spec": {"selector": {"matchLabels": {"app": other}}, "namespaceSelector": {"any": True}},
        },
        "ConfigMap": {"apiVersion": "v1", "data": {}},
        "Secret": {"apiVersion": "v1"},
        "ServiceAccount": {"apiVersion": "v1"},
        "ExternalSecret": {"apiVersion": "external-secrets.io/v1", "spec": {"target": {"name": other}}},
        "RoleBinding": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "roleRef": {"kind": "Role", "name": other},
            "subjects": [{"kind": "ServiceAccount", "name": other, "namespace": far}],
        },
        "Widget": {"apiVersion": "example.com/v1", "spec": {"uses": other}},
        "CustomResourceDefinition": {
            "apiVersion": "apiextensions.k8s.io/v1",
            "spec": {"group": "example.com", "names": {"kind": "Widget"}},
        },
    }
    return {**bodies[kind], "kind": kind}


KINDS = tuple(
    sorted(("ConfigMap", "CustomResourceDefinition", "Deployment", "ExternalSecret", "HTTPRoute", "Ingress", "RoleBinding"))
)
KINDS += ("Secret", "Service", "ServiceAccount", "ServiceMonitor", "Widget")


@st.composite
def changed_facts(draw: st.DrawFn) -> tuple[Key, ObjectFacts | None]:
    """Return an object with its facts; None if it is gone."""
    kind, name, other, namespace, far = (draw(st.sampled_from(one)) for one in (KINDS, NAMES, NAMES, NAMESPACES, NAMESPACES))
    body = make_body(kind, name, other, far)
    if draw(st.booleans()):
        body["metadata"] = {
            "labels": {"app": other},
            "annotations": {"gitsched.io/follow-targets": draw(st.sampled_from(("false", "x")))},
        }
    key = Key(parse_api_group(body["apiVersion"]), kind, "" if kind == "CustomResourceDefinition" else namespace, name)
    how = draw(st.sampled_from(("gone", "unselected", "placed", "placed", "placed", "contained")))
    if how == "gone":
        return key, None
    clusters = draw(st.lists(st.sampled_from(CLUSTERS), unique=True, max_size=3))
    targets = tuple(TargetCluster(one, None, draw(st.booleans())) for one in clusters)
    template, reader = Document(key, body["apiVersion"], body), FactReader({}, Config())
    if how == "contained":
        owner = key._replace(group="krake.io", kind="Application")
        outcome = Outcome(owner, "krake", "placed", "p", "", targets, None, (), "", EPOCH, manifests=((key, body),))
        return owner, reader.read_placed(Document(owner, "", {}), outcome)
    policy = draw(st.sampled_from(("p", "q")))
    outcome = Outcome(key, "karmada", "placed", policy, "", targets, None, (), "", EPOCH)
    return key, reader.read_template(template, outcome if how == "placed" else None)


ASSUMED = st.lists(st.builds(AssumedObject, st.sampled_from(("Secret", "Widget.example.com")), st.sampled_from(NAMES)), max_size=1)


def list_results(relations: PlanRelations) -> dict[str, dict[tuple[str, ...], object]]:
    """Return all results that findings and explanations are made from."""
    database = relations.database
    return {name: {key: database.read(name, key) for key in database.list_keys(name)} for name in RESULTS}


@given(
    st.lists(
        st.tuples(st.lists(changed_facts(), max_size=6), ASSUMED, st.sampled_from(("", "save", "fork"))), min_size=1, max_size=8
    )
)
@settings(max_examples=count_examples(20))
def test_relations_that_are_updated_equal_new_ones(history: list[tuple[list[tuple[Key, ObjectFacts | None]], Any, str]]) -> None:
    store = MemoryStore()
    relations, present = PlanRelations(), dict[Key, ObjectFacts | None]()
    for changes, assumed, then in history:
        config = Config(assumed=tuple(assumed))
        present |= changes
        relations = relations.fork() if then == "fork" and not relations.database.is_new else relations
        relations.assign(FactChanges(dict(changes)), config)
        relations.update()
        new = PlanRelations()
        new.assign(FactChanges(present), config)
        new.update()
        assert list_results(relations) == list_results(new)
        relations.database.check((name, key) for name in RESULTS for key in relations.database.list_keys(name))
        if then == "save":
            new.save()
            store = MemoryStore({name: data for name, data in new.store.take_rows().items() if data is not None})
            relations = PlanRelations(store.load)
