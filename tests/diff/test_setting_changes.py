"""Changes of gitsched.yaml are listed up to a limit, and never left out silently."""

from __future__ import annotations

from gitsched.diff.setting_changes import MAX_CHANGES, list_setting_changes


def test_changes_are_listed_by_path() -> None:
    changes = list_setting_changes({"output": {"branch": "a"}}, {"output": {"branch": "b"}, "krake": {"stickiness": 2}})
    assert [change.text for change in changes] == ["krake.stickiness: 0.1 (default) -> 2", "output.branch: a -> b"]


def test_a_member_that_is_not_set_has_its_default() -> None:
    changes = list_setting_changes({"karmada": {"preemption": True}}, {"output": {"repository": "/other"}})
    assert [change.text for change in changes] == [
        "karmada.preemption: true -> false (default)",
        "output.repository: (not set) -> /other",
    ]
    limits = list_setting_changes({}, {"guard": {"fleet": {"removed": 50}}})
    assert [change.text for change in limits] == ["guard.fleet.removed: 20 (default) -> 50"]


def test_a_member_that_is_set_to_its_default_is_no_change() -> None:
    same = {
        "output": {"branch": "placements", "overlap": "600s", "protectedNamespaces": ["argocd", "flux-system", "openshift-gitops"]},
        "karmada": {"taintEviction": True, "failback": "Never"},
        "guard": {"fleet": {"removed": 20}},
        "krake": {},
    }
    assert list_setting_changes({}, same) == list_setting_changes(same, {}) == []
    longer = list_setting_changes(same, {"output": {"overlap": "601s"}})
    assert [change.text for change in longer] == ["output.overlap: 600s -> 601s"]


def test_more_changes_than_the_limit_are_counted_and_hide_no_sensitive_one() -> None:
    many = {f"a{number:04}": number for number in range(MAX_CHANGES + 5)}
    changes = list_setting_changes({}, {**many, "output": {"repository": "https://example.com/other.git"}})
    assert len(changes) == MAX_CHANGES + 1
    assert changes[0].change.path == "output.repository"
    assert changes[0].sensitive
    assert changes[-1].text == "6 more members"
    assert not changes[-1].sensitive
