"""Repeated runs of a commit continue from the earlier ones: expired deadlines have no effect again."""

from __future__ import annotations

from .conftest import Fleet, cluster, deployment, policy

PATIENT = """\
    clusterTolerations:
    - {key: power, operator: Exists, effect: NoExecute, tolerationSeconds: 600}
    - {key: network, operator: Exists, effect: NoExecute, tolerationSeconds: 1200}
"""
WEB = "default/deployment-web"


def fill(fleet: Fleet) -> None:
    """Web on all clusters; at hour 1 two of three clusters fail, tolerated for ten and for twenty minutes."""
    files = {"web.yaml": deployment("web"), "policy.yaml": policy(more=PATIENT), "third.yaml": cluster("third")}
    fleet.commit({**files, "first.yaml": cluster("first"), "second.yaml": cluster("second")})
    fleet.reconcile()
    assert fleet.where(WEB) == ["first", "second", "third"]
    fleet.commit({"first.yaml": cluster("first", "power:NoExecute"), "second.yaml": cluster("second", "network:NoExecute")}, hour=1)


def test_runs_after_the_last_deadline_commit_nothing(fleet: Fleet) -> None:
    fill(fleet)
    assert fleet.reconcile(3).after is not None
    assert fleet.where(WEB) == ["third"]
    assert [fleet.reconcile(hour).after for hour in (3, 4, 30)] == [None, None, None]


def test_runs_between_the_deadlines_commit_only_what_a_deadline_changed(fleet: Fleet) -> None:
    fill(fleet)
    minutes = (0, 11, 13, 21, 23, 31, 45)
    commits = {minute: fleet.reconcile(1 + minute / 60).after for minute in minutes}
    assert [minute for minute in minutes if commits[minute]] == [0, 11, 21, 31]
    assert fleet.where(WEB) == ["third"]
    assert fleet.binding("web-deployment")["status"]["lastScheduledTime"] == "2026-03-02T09:20:00Z"


def test_a_commit_with_a_future_date_does_not_delay_deadlines_of_later_ones(fleet: Fleet) -> None:
    fill(fleet)
    fleet.reconcile(1.9)
    fleet.commit({"web.yaml": deployment("web", replicas=3)}, hour=1000)
    fleet.reconcile(2)
    assert fleet.where(WEB) == ["third"]
    fleet.commit({"first.yaml": cluster("first")}, hour=2.5)
    fleet.reconcile(3)
    assert fleet.where(WEB) == ["first", "third"]
    assert fleet.binding("web-deployment")["status"]["lastScheduledTime"] == "2026-03-02T10:30:00Z"
