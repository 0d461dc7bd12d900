"""The rollouts in gitsched.json: what is written is read back, also where an earlier version has written it."""

from __future__ import annotations

from datetime import UTC, datetime

from gitsched.model.document import Key
from gitsched.model.rollouts import ApprovedFiles, ChangedCluster, HeldFiles, LostCopy, RolloutRecord
from gitsched.render.rollout_records import read_rollout, write_rollout

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
WEB = Key("apps", "Deployment", "shop", "web")
PATH = "clusters/bru/shop/deployment-web.yaml"
PLAIN = RolloutRecord("shop", (ChangedCluster("ash", "1" * 40, NOW, succeeded=True),), (HeldFiles(WEB, "bru", (PATH,)),))
LOST = RolloutRecord(
    "shop",
    (
        ChangedCluster("ash", "1" * 40, NOW, failed=True, lost=NOW),
        ChangedCluster("cph", "", NOW, skipped=True),
    ),
    (HeldFiles(WEB, "bru", (), approved=False), HeldFiles(WEB, "dub", (PATH,))),
    (LostCopy(WEB, "ash", "0123456789abcdef"),),
    (ApprovedFiles(WEB._replace(name="api"), "", ()), ApprovedFiles(WEB, "ash", (PATH,))),
)


def test_records_are_read_back() -> None:
    for record in (PLAIN, LOST):
        assert read_rollout(record.name, write_rollout(record)) == record


def test_a_record_without_lost_clusters_is_written_as_before() -> None:
    entry = {"parent": "1" * 40, "appliedAt": "2026-03-02T08:00:00Z", "state": "Success"}
    assert write_rollout(PLAIN) == {"clusters": {"ash": entry}, "held": [[list(WEB), "bru", [PATH]]]}


def test_what_is_malformed_is_left_out() -> None:
    malformed = {"clusters": {"ash": {"appliedAt": "soon"}, "bru": 3}, "held": [["web"], 3], "lost": {}, "approved": [[[], "a", 1]]}
    assert read_rollout("shop", malformed) == RolloutRecord("shop", ())
