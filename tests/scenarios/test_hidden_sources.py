"""A source whose `.sourceignore` hides its policies or clusters gets a warning that names the rules."""

from __future__ import annotations

import pytest

from gitsched.model.finding import Finding

from .conftest import Fleet, cluster, deployment, policy

MEMBERS = {"fleet/a.yaml": cluster("ash"), "fleet/policy.yaml": policy(""), "apps/web.yaml": deployment("web")}
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {ignore: [/fleet]}}\n"
KRAKE = "api: infrastructure\nkind: Cloud\nmetadata: {name: c, namespace: t}\nspec: {type: openstack}\n"


def find(fleet: Fleet, files: dict[str, str | None], hour: float = 0) -> list[Finding]:
    fleet.commit(files, hour=hour)  # type: ignore[arg-type]  # a dict of text is one of text or None
    return [finding for finding in fleet.preview(hour).plan.findings if finding.code == "source-hidden"]


@pytest.mark.parametrize(
    ("files", "where", "expected"),
    [
        pytest.param(
            {**MEMBERS, ".sourceignore": "# for Flux\n/*\n!/deploy\n"},
            ".sourceignore:2:1",
            "no file of the source is read: 3 of 3 YAML and JSON files are hidden, such as fleet/a.yaml "
            "(/* in line 2 of .sourceignore hides 3)",
            id="everything",
        ),
        pytest.param(
            {**MEMBERS, "fleet/.sourceignore": "a*\npolicy.yaml\n"},
            "fleet/.sourceignore:1:1",
            "no policy and no cluster is read: 2 of 3 YAML and JSON files are hidden, such as fleet/a.yaml "
            "(a* in line 1 of fleet/.sourceignore hides 1, policy.yaml in line 2 of fleet/.sourceignore hides 1)",
            id="the fleet, by a file in its directory",
        ),
        pytest.param(
            {**MEMBERS, "gitsched.yaml": SETTINGS, ".sourceignore": "*.md\n"},
            "gitsched.yaml:1:1",
            "no policy and no cluster is read: 2 of 4 YAML and JSON files are hidden, such as fleet/a.yaml "
            "(/fleet of source.ignore in gitsched.yaml hides 2)",
            id="the fleet, by the settings",
        ),
        pytest.param(
            {"clouds/c.yaml": KRAKE, "apps/web.yaml": deployment("web"), ".sourceignore": "clouds/\n"},
            ".sourceignore:1:1",
            "no policy and no cluster is read: 1 of 2 YAML and JSON files are hidden, such as clouds/c.yaml",
            id="an API without versions",
        ),
        pytest.param(
            {"chart/values.yaml": "a: 1\n", ".sourceignore": "*.yaml\n"},
            ".sourceignore:1:1",
            "no file of the source is read: 1 of 1 YAML and JSON files are hidden (*.yaml in line 1 of .sourceignore hides 1)",
            id="no fleet at all",
        ),
    ],
)
def test_the_rules_that_hide_a_fleet_are_named(fleet: Fleet, files: dict[str, str | None], where: str, expected: str) -> None:
    (finding,) = find(fleet, files)
    assert (finding.severity, str(finding.location)) == ("warning", where)
    assert finding.message.startswith(expected)
    assert "remove the rule, or add one such as !/fleet after it" in finding.message


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({**MEMBERS, ".sourceignore": "/apps\n"}, id="workloads are hidden"),
        pytest.param({**MEMBERS, ".sourceignore": "policy.yaml\n"}, id="a cluster is read"),
        pytest.param({"apps/web.yaml": deployment("web"), ".sourceignore": "*.md\n"}, id="nothing is hidden"),
        pytest.param(
            {"apps/web.yaml": deployment("web"), "x/values.yaml": "# apiVersion: a\nb: 1\n", ".sourceignore": "/x\n"},
            id="nothing of a policy API is hidden",
        ),
    ],
)
def test_other_sources_have_no_such_warning(fleet: Fleet, files: dict[str, str | None]) -> None:
    assert find(fleet, files) == []


def test_the_warning_ends_when_a_policy_is_read_and_returns(fleet: Fleet) -> None:
    filler = {f"apps/{number}.yaml": deployment(f"w{number}") for number in range(9)}
    assert find(fleet, {**MEMBERS, **filler, ".sourceignore": "/fleet\n"})
    assert find(fleet, {"apps/0.yaml": policy("", name="other")}, 1) == []
    assert find(fleet, {"apps/0.yaml": deployment("w0")}, 2)
