"""What a cluster reports about the output branch, from what its delivery tools say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gitsched.collect.cluster_report import read_report
from gitsched.model.cluster_report import ClusterReport, Health
from tests.collect.test_any_answer import AnsweringReader
from tests.collect.test_collection import make_flux, make_workload

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD, NEW = "a" * 40, "b" * 40
FLUX, ARGO = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations", "/apis/argoproj.io/v1alpha1/applications"


def make_attempt(ready: str, reason: str, *, applied: str = OLD, attempted: str = NEW) -> Any:
    """Return a Kustomization with `wait` as Flux leaves it: a commit counts as applied when its health checks have passed."""
    found = make_flux(f"placements@sha1:{applied}" if applied else "", ready, reason)
    found["status"]["lastAttemptedRevision"] = f"placements@sha1:{attempted}"
    return found


def read(answers: dict[str, Any], before: ClusterReport | None = None) -> tuple[tuple[str, Health] | None, list[str]]:
    workloads = {"deployments": [make_workload("web", 1, 1)], "statefulsets": [make_workload("db", 1, 1)]}
    known = {f"/apis/apps/v1/{plural}": {"items": items} for plural, items in workloads.items()}
    known[ARGO] = {"items": []}
    notes: list[str] = []
    report = read_report(AnsweringReader({**known, **answers}), "ash", "placements", before, NOW, notes.append)
    return (report.commit, report.health) if report is not None else None, notes


@pytest.mark.parametrize(
    ("objects", "failed", "expected"),
    [
        ([make_attempt("True", "ReconciliationSucceeded", applied=NEW)], "", (NEW, "Healthy")),
        ([make_attempt("Unknown", "Progressing")], "", (OLD, "Progressing")),
        ([make_attempt("False", "HealthCheckFailed")], "", (NEW, "Degraded")),
        ([make_attempt("False", "BuildFailed", applied="")], "", (NEW, "Degraded")),
        ([make_attempt("False", "DependencyNotReady")], "", (OLD, "Progressing")),
        ([make_attempt("Unknown", "Progressing")], NEW, (NEW, "Degraded")),
        ([make_attempt("Unknown", "Progressing")], OLD, (OLD, "Progressing")),
        ([make_attempt("True", "ReconciliationSucceeded", applied=NEW)], NEW, (NEW, "Healthy")),
        ([make_flux(f"placements@sha1:{OLD}"), make_attempt("False", "ReconciliationFailed")], "", (NEW, "Degraded")),
        ([make_flux(f"placements@sha1:{OLD}"), make_flux(f"placements@sha1:{NEW}")], "", (OLD, "Progressing")),
    ],
)
def test_a_commit_that_flux_cannot_apply_is_reported_as_failed(objects: Any, failed: str, expected: Any) -> None:
    before = ClusterReport("ash", failed, "Degraded", NOW) if failed else None
    assert read({FLUX: {"items": objects}}, before)[0] == expected


def test_a_cluster_of_which_a_part_cannot_be_read_is_not_healthy() -> None:
    """Its earlier report stays; a failure that is seen is reported nevertheless."""
    done, notes = read({FLUX: {"items": [make_flux(f"placements@sha1:{NEW}")]}, ARGO: 503})
    assert (done, len(notes)) == (None, 1)
    assert "applications" in notes[0]
    done, _ = read({FLUX: {"items": [make_attempt("False", "HealthCheckFailed")]}, ARGO: 503})
    assert done == (NEW, "Degraded")
