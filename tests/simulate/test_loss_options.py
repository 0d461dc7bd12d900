"""The options of `gitsched simulate --sweep`: lists of losses, failure rates, shards and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.cli import failure_rates, main
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile.review import loss_shards
from gitsched.simulate import loss_list
from gitsched.simulate.scenario import Scenario, describe_scenario
from tests.simulate.conftest import Fleet, Simulate

RATES = "failures:\n- {each: cluster, perYear: 900, hours: 4}\n- {each: region, perYear: 99, hours: 8}\n"


def test_pairs_list_the_worst_losses_and_the_most_affected_workloads(shop: Fleet, simulate: Simulate) -> None:
    text = simulate("--sweep", "pairs")
    assert text.startswith(
        "Losing any two of 4 clusters (3 workloads), 6 losses: 1 loss leaves replicas missing or workloads unplaced, "
        "5 leave fewer replicas, 0 do neither."
    )
    found = simulate("--sweep", "pairs", "-o", "json")
    worst = found["losses"][0]
    assert (worst["lost"], worst["homeless"], found["simulated"], found["degraded"]) == (["w1", "w2"], 1, 6, 1)
    assert [(row["workload"]["name"], row["losses"], row["mostMissing"]) for row in found["affected"]] == [("pay", 1, 3)]
    alone = simulate("--lose", "w1", "--lose", "w2", "-o", "json")
    assert (worst["moved"], worst["starting"], worst["short"]) == (alone["moved"], alone["starting"], alone["short"])
    page = simulate("--sweep", "pairs", "-o", "html")
    assert 'class="heat"' in page
    assert "w1, w2" in page
    assert "Deployment default/pay" in simulate("--sweep", "pairs", "-o", "markdown")


def test_samples_give_the_availability_of_each_workload(shop: Fleet, simulate: Simulate, tmp_path: Path) -> None:
    rates = tmp_path / "rates.yaml"
    rates.write_text(RATES)
    options = ("--sweep", "random", "--samples", "300", "--rates", str(rates))
    found = simulate(*options, "-o", "json")["availability"]
    [pay, *_] = found["workloads"]
    assert pay["workload"]["name"] == "pay"
    assert 0 < pay["atLeast"] < pay["available"] < pay["atMost"] < 1
    assert (found["samples"], found["degradedSamples"] > 0, pay["lostReplicaHours"] > 0) == (300, True, True)
    text = simulate(*options)
    assert "of 300 samples, replicas are missing" in text
    assert "AVAILABILITY" in text
    assert simulate(*options, "--seed", "1", "-o", "json")["availability"] != found


def test_random_losses_have_so_many_clusters(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--sweep", "random", "--samples", "30", "--size", "2", "-o", "json")
    assert {len(row["lost"]) for row in found["losses"]} == {2}
    assert 1 < found["simulated"] <= 6


def test_shards_are_merged_to_the_result_of_all_losses(shop: Fleet, simulate: Simulate, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.jsonl") for number in (1, 2, 3)]
    for sweep in ("clusters", "pairs"):
        for number, file in enumerate(files, 1):
            told = simulate("--sweep", sweep, "--shard", f"{number}/3", "--out", file)
            assert told.startswith(f"Shard {number} of 3: ")
        assert simulate("merge", *files, "-o", "json") == simulate("--sweep", sweep, "-o", "json")
    assert "shards are missing: 2 of 3" in simulate("merge", files[0], files[2], code=1)
    assert simulate("merge", *files, "--fail-on", "short", code=1) == simulate("--sweep", "pairs")


def test_shards_of_another_plan_are_refused(shop: Fleet, simulate: Simulate, tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    simulate("--sweep", "clusters", "--shard", "1/2", "--out", one)
    shop.commit({"apps/new.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: default}\n"}, hour=1)
    simulate("--sweep", "clusters", "--shard", "2/2", "--out", two)
    assert "its plan is another one" in simulate("merge", one, two, code=1)


REFUSED = (
    (("--lose", "w1", "--samples", "5"), "--samples requires --sweep"),
    (("--sweep", "pairs", "--samples", "5"), "--samples requires --sweep random"),
    (("--sweep", "zones", "--seed", "0"), "--seed requires --sweep random"),
    (("--sweep", "random", "--samples", "5", "--rates", "x", "--size", "2"), "--size and --rates exclude each other"),
    (("--sweep", "random"), "--sweep random requires --samples N"),
    (("--sweep", "pairs", "--against", "main"), "--against is for single losses"),
    (("--sweep", "zones", "--shard", "1/2"), "use --shard and --out together"),
    (("--sweep", "zones", "--shard", "3/2", "--out", "x"), "--shard '3/2' is not I/N"),
    (("--sweep", "zones", "--shard", "half", "--out", "x"), "--shard 'half' is not I/N"),
    (("--sweep", "random", "--samples", "5", "--rates", "nowhere.yaml"), "nowhere.yaml: No such file"),
    (("w1",), "unexpected argument 'w1'; name what is lost with --lose"),
    (("merge",), "with the files of all shards"),
    (("merge", "x", "--sweep", "zones"), "with the files of all shards"),
)


def refuse(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return why the command is not carried out, on one line."""
    capsys.readouterr()
    assert main(["simulate", *options]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_options_that_have_no_meaning_together_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in REFUSED:
        assert message in refuse(capsys, *options)


MISTAKES = {
    "a: b\n": "1:1: expected a list `failures`",
    "failures: []\n": "expected a list `failures`",
    "failures:\n- {each: cluster, perYear: 0, hours: 2}\n": "2:28: perYear: expected a number above 0",
    "failures:\n- {each: cluster, perYear: .nan, hours: 2}\n": "perYear: expected a number above 0",
    "failures:\n- {each: cluster, perYear: often, hours: 2}\n": "perYear: expected a number above 0",
    "failures:\n- {each: cluster, perYear: 2}\n": "2:3: hours: expected a number above 0",
    "failures:\n- {each: rack, perYear: 2, hours: 1}\n": "2:10: expected one of cluster, zone, region, provider",
    "failures:\n- {perYear: 2, hours: 1}\n": "2:3: expected either `each` or `label`",
    "failures:\n- {each: zone, per_year: 2, hours: 1}\n": "2:26: unknown field 'per_year'",
    "failures:\n- {each: zone, perYear: 2, hours: 1, names: w1}\n": "expected a list of names of clusters",
    "failures: [\n": "rates.yaml:2:1: ",
    "---\na: b\n---\nc: d\n": "has 2 documents",
}


def test_rates_that_are_no_rates_are_refused_with_their_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rates = tmp_path / "rates.yaml"
    for text, message in MISTAKES.items():
        rates.write_text(text)
        assert message in refuse(capsys, "--sweep", "random", "--samples", "5", "--rates", str(rates))


def test_lists_files_and_shards_beyond_a_limit_are_refused(
    shop: Fleet, simulate: Simulate, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "rates.yaml")
    Path(file).write_text(RATES)
    monkeypatch.setattr(failure_rates, "MAX_SIZE", 10)
    assert "has more than 10 bytes" in refuse(capsys, "--sweep", "random", "--samples", "5", "--rates", file)
    assert "N is at most 10,000" in refuse(capsys, "--sweep", "zones", "--shard", "1/10001", "--out", "x")
    monkeypatch.setattr(loss_list, "MAX_LOSSES", 5)
    assert "4 clusters are 6 pairs, of at most 5; use --sweep random --samples N" in simulate("--sweep", "pairs", code=1)
    shard = str(tmp_path / "shard")
    simulate("--sweep", "clusters", "--shard", "1/1", "--out", shard)
    monkeypatch.setattr(loss_shards, "MAX_LINE", 100)
    assert "a line has more than 100 bytes" in simulate("merge", shard, code=1)


def test_many_scopes_of_a_kind_are_counted() -> None:
    """A sentence names up to four clusters, and counts more."""
    clusters = tuple(FailureDomain("cluster", f"c{number}") for number in range(6))
    assert describe_scenario(Scenario(drain=clusters[:2])) == "cluster c0 and cluster c1 are drained"
    assert describe_scenario(Scenario(lose=(FailureDomain("zone", "a"), *clusters))) == (
        "zone a and 6 clusters (c0, c1, c2 and 3 more) are lost"
    )
