"""What `explain` proposes for a cluster of Open Cluster Management or Krake is committed: the workload runs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gitsched.model.document import Document
from gitsched.model.explanation import Counterfactual, Explanation
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.simulate import counterfactuals
from tests.builders import krake, ocm

from .conftest import UNGUARDED, Fleet

NAMES = ("a", "b", "c")
ENVIRONMENTS = st.sampled_from(["prod", "test"])
EXAMPLES = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def fleets(tmp_path: Path) -> Iterator[Fleet]:
    """Yield fleets without files."""
    return (Fleet(tmp_path / f"fleet-{number}", tmp_path / "cache") for number in range(1000))


def write_files(documents: Mapping[tuple[str, str], dict[str, Any]]) -> dict[str, str]:
    return {f"{kind}-{name}.yaml".lower(): yaml.safe_dump(body) for (kind, name), body in documents.items()}


def carry_out(fleet: Fleet, documents: dict[tuple[str, str], dict[str, Any]], workload: tuple[str, str, str], cluster: str) -> bool:
    """Commit what is proposed for a cluster; return whether something sufficient is."""
    fleet.commit({"gitsched.yaml": UNGUARDED, **write_files(documents)})
    fleet.reconcile()
    edited: dict[Any, Document] = {}
    edit_catalog = counterfactuals.edit_catalog

    def record(catalog: Any, changes: Any, added: Any = ()) -> Any:
        edited.update(changes)
        edited.update((document.key, document) for document in added)
        return edit_catalog(catalog, changes, added)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counterfactuals, "edit_catalog", record)
        found = explain_resource(fleet.settings(0.5), *workload, (cluster,))
    assert isinstance(found, Explanation)
    promised: Counterfactual | None = next((entry for entry in found.counterfactuals if entry.cluster == cluster), None)
    sufficient = promised is not None and promised.sufficient
    event("runs there" if promised is None else "proposed" if sufficient else "nothing proposed")
    if sufficient:
        bodies = {(key.kind, key.name): yaml.safe_load(yaml.safe_dump(document.body)) for key, document in edited.items()}
        fleet.commit(write_files(bodies), hour=1)
        fleet.reconcile(1)
        fleet.reconcile(1.5)
    return sufficient


CLUSTERS = st.fixed_dictionaries({name: st.tuples(ENVIRONMENTS, st.booleans()) for name in NAMES})


@EXAMPLES
@given(values=CLUSTERS, wanted=ENVIRONMENTS, number=st.sampled_from([None, 1, 2]), cluster=st.sampled_from(NAMES))
def test_a_counterfactual_of_a_placement_delivers_to_the_cluster(
    fleets: Iterator[Fleet], values: Any, wanted: str, number: int | None, cluster: str
) -> None:
    fleet = next(fleets)
    bodies = [
        ocm.managed_cluster(name, {"env": environment}, [ocm.taint("gpu")] if tainted else [])
        for name, (environment, tainted) in values.items()
    ]
    bodies += [
        *ocm.bound_global_set("shop"),
        ocm.placement("pick", "shop", number, predicates=[ocm.label_predicate(env=wanted)]),
        ocm.placed_config_map("options", "shop", "pick"),
    ]
    documents = {(body["kind"], body["metadata"]["name"]): body for body in bodies}
    if carry_out(fleet, documents, ("configmap", "shop", "options"), cluster):
        assert cluster in fleet.delivered("shop/configmap-options")


@EXAMPLES
@given(values=CLUSTERS, wanted=ENVIRONMENTS, migrates=st.booleans(), cluster=st.sampled_from(NAMES))
def test_a_counterfactual_of_an_application_binds_it_to_the_cluster(
    fleets: Iterator[Fleet], values: Any, wanted: str, migrates: bool, cluster: str
) -> None:
    fleet = next(fleets)
    bodies = [
        krake.cluster(name, labels={"env": environment}, custom_resources=["widgets.example.com"] if has_widgets else [])
        for name, (environment, has_widgets) in values.items()
    ]
    constraints = {"labels": [f"env is {wanted}"], "custom_resources": ["widgets.example.com"]}
    bodies.append(krake.application(constraints=constraints, migration=migrates))
    documents = {(body["kind"], body["metadata"]["name"]): body for body in bodies}
    if carry_out(fleet, documents, ("application", krake.NAMESPACE, "echo"), f"{krake.NAMESPACE}.{cluster}"):
        status = fleet.load(f"status/kubernetes/application/{krake.NAMESPACE}/echo.yaml")["status"]
        assert status["scheduled_to"]["name"] == cluster
