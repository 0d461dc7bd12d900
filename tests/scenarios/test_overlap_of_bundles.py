"""A Bundle that moves stays in the cluster that it leaves, whichever tool builds it."""

from __future__ import annotations

import pytest

from .conftest import Fleet
from .test_bundle_delivery import APPLICATION, BASE, FLUX, KUSTOMIZATION, bundle, policy

OVERLAP = 1 / 6
KEPT = {
    "manifests": "clusters/first/shop/deployment-first-web.yaml",
    "flux": FLUX.format("first", KUSTOMIZATION),
    "argocd": APPLICATION.format("first"),
}


@pytest.mark.parametrize("delivery", KEPT)
def test_a_bundle_that_moves_stays_for_the_overlap(fleet: Fleet, delivery: str) -> None:
    only = {name: policy()["policy.yaml"].replace("[first, second]", f"[{name}]") for name in ("first", "second")}
    fleet.commit({**BASE, **bundle(delivery, "{}"), "policy.yaml": only["first"]})
    fleet.reconcile()
    places = ("clusters/first/shop/", "clusters/first/flux-system/", "hub/argocd/first/")
    before = {path: blob for path, blob in fleet.files().items() if path.startswith(places)}
    assert KEPT[delivery] in before
    fleet.commit({"policy.yaml": only["second"]}, hour=1)
    fleet.reconcile(1)
    after = fleet.files()
    assert {path: after.get(path) for path in before} == before
    assert KEPT[delivery].replace("first", "second") in after
    fleet.reconcile(1 + OVERLAP)
    assert KEPT[delivery] not in fleet.files()
    assert KEPT[delivery].replace("first", "second") in fleet.files()


def test_a_bundle_without_a_cluster_keeps_what_it_has(fleet: Fleet) -> None:
    fleet.commit({**BASE, **bundle("argocd", "{}"), **policy()})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy()["policy.yaml"].replace("[first, second]", "[nowhere]")}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(9)
    assert {APPLICATION.format(name) for name in ("first", "second")} <= fleet.files().keys()
