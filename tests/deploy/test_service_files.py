"""The unit for systemd and the alerts for Prometheus name options and metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import yaml

from gitsched.cli import cli

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy/systemd/gitsched.service").read_text()


def test_the_unit_sets_options_of_watch() -> None:
    command = cli.get_command(click.Context(cli), "watch")
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert set(re.findall(r"GITSCHED_\w+", UNIT)) <= {option.envvar for option in options}
    assert "ExecStart=/usr/local/bin/gitsched watch --log-format json" in UNIT


def test_the_unit_loads_each_credential_that_it_names() -> None:
    assert set(re.findall(r"%d/([\w-]+)", UNIT)) == set(re.findall(r"^LoadCredential=([\w-]+):", UNIT, re.MULTILINE))


def test_the_alerts_name_documented_metrics() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
    page = (ROOT / "docs/watch.md").read_text()
    assert [
        rule["alert"] for rule in rules if not all(f"`{name}`" in page for name in re.findall(r"gitsched_\w+", rule["expr"]))
    ] == []
