"""The Python API: its example, wrong arguments, what `import gitsched` loads, and settings among the documents."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import gitsched
from tests.tables import each_row

CONFIG = "{apiVersion: gitsched.io/v1alpha1, kind: Config, metadata: {name: %s}, spec: {karmada: {taintEviction: %s}}}"
DOWN = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: first}
spec: {syncMode: Push, taints: [{key: power, value: "off", effect: NoExecute}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}
---
"""
PREVIOUS = """
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: web-deployment
  namespace: default
  annotations: {policy.karmada.io/applied-placement: "{}"}
spec: {clusters: [{name: first, replicas: 1}]}
status: {lastScheduledTime: "2026-01-01T00:00:00Z"}
"""


def schedule(*configs: str, **arguments: Any) -> tuple[bool, list[str]]:
    """Return whether the workload is evicted from its tainted cluster, and the codes of the findings about Configs."""
    bodies = [*yaml.safe_load_all(DOWN + "\n---\n".join(configs))]
    done = gitsched.schedule([body for body in bodies if body], previous=[yaml.safe_load(PREVIOUS)], **arguments)
    (binding,) = (body for body in done.documents if body["kind"] == "ResourceBinding")
    codes = [finding.code for finding in done.findings if finding.resource and finding.resource[0] == "Config"]
    return "gracefulEvictionTasks" in binding["spec"], codes


@pytest.mark.parametrize(
    ("configs", "config", "evicts", "codes"),
    [
        pytest.param([], None, True, [], id="none"),
        pytest.param([CONFIG % ("a", "false")], None, False, [], id="one"),
        pytest.param([CONFIG % ("a", "false"), CONFIG % ("b", "true")], None, False, ["stray-config"], id="two: the first"),
        pytest.param([CONFIG % ("a", "false")], {}, True, ["stray-config"], id="the argument takes precedence"),
        pytest.param([CONFIG % ("a", "perhaps")], None, True, ["wrong-type"], id="an invalid one"),
    ],
)
def test_a_config_among_the_documents_is_read_or_reported(
    configs: list[str], config: dict[str, Any] | None, evicts: bool, codes: list[str]
) -> None:
    assert schedule(*configs, config=config) == (evicts, codes)


ROOT = Path(__file__).parents[3]
BODY: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
LOOP: list[Any] = []
LOOP += [LOOP, LOOP]


def test_the_example_prints_what_the_documentation_shows() -> None:
    """mypy checks it as well: see `files` in pyproject.toml."""
    source, page = (ROOT / "examples/python_api.py").read_text(), (ROOT / "docs/python.md").read_text()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "python_api.py", "exec"), {"__name__": "__main__"})
    assert f"```python\n{source}```" in page
    assert f"```text\n{printed.getvalue()}```" in page


def test_the_example_of_scale_schedules_every_variant() -> None:
    source, page = (ROOT / "examples/sweep.py").read_text(), (ROOT / "docs/development/scale.md").read_text()
    example: dict[str, Any] = {"__name__": "sweep"}
    exec(compile(source, "sweep.py", "exec"), example)
    with ThreadPoolExecutor(1) as executor:
        placed = example["sweep"](example["make_fleet"](clusters=3, workloads=5), (0, 1, 2, 8), executor)
    assert placed == {0: 0, 1: 0, 2: 5, 8: 5}
    shown = page.partition("```python\n")[2].partition("```")[0]
    assert shown.startswith("def count_placed(")
    assert shown in source


def test_types_are_exported_and_loaded_when_they_are_used() -> None:
    for name in gitsched.__all__:
        assert getattr(gitsched, name).__doc__ or name == "__version__"
        assert name in dir(gitsched)
    with pytest.raises(AttributeError, match="'gitsched' has no attribute 'Scedule'"):
        gitsched.Scedule  # noqa: B018
    program = "import sys, gitsched; print(sum(name.startswith('gitsched.') for name in sys.modules), 'yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"


@each_row(
    ("call", "message"),
    [
        (lambda: gitsched.schedule(None), "`documents` is None, not a list of documents"),
        (lambda: gitsched.schedule("kind: Pod"), "`documents` is a str, not a list of documents: parse its YAML first"),
        (lambda: gitsched.schedule(BODY), "`documents` is a dict, not a list of documents: put it into a list"),
        (lambda: gitsched.schedule([1]), "`documents[0]` is an int, not a dict"),
        (lambda: gitsched.schedule([BODY, None]), "`documents[1]` is None, not a dict: leave out empty documents of a YAML stream"),
        (
            lambda: gitsched.schedule([BODY | {"data": {"a": [{1}]}}]),
            "`documents[0]['data']['a'][0]` is a set: a document consists of",
        ),
        (lambda: gitsched.schedule([BODY | {"data": Decimal(1)}]), "`documents[0]['data']` is a Decimal: a document consists of"),
        (
            lambda: gitsched.schedule([], previous=gitsched.schedule([])),
            "`previous` is a Schedule, not a list of documents: use its member",
        ),
        (lambda: gitsched.schedule([], previous=["x"]), "`previous[0]` is a str, not a dict"),
        (
            lambda: gitsched.schedule([], now=datetime(2026, 1, 1)),  # noqa: DTZ001
            "`now` is a datetime without a timezone: use datetime(..., tzinfo=UTC)",
        ),
        (lambda: gitsched.schedule([], now="2026-01-01"), "`now` is a str, not a datetime"),
        (lambda: gitsched.schedule([], at=date(2026, 1, 1)), "`at` is a date, not a datetime"),
        (lambda: gitsched.schedule([], config=[1]), "`config` is a list, not a mapping"),
        (lambda: gitsched.schedule([], observations=[1]), "`observations` is a list, not a mapping"),
        (lambda: gitsched.validate([BODY], strictness=1), "`strictness` is an int, not a string"),
        (lambda: gitsched.validate(b""), "`documents` is a bytes, not a list of documents: parse its YAML first"),
        (lambda: gitsched.observe(5), "`documents` is an int, not a list of documents"),
        (lambda: gitsched.observe([], hosts="example.com"), "`hosts` is a str, not a list of strings: put it into a list"),
        (lambda: gitsched.observe([], timeout="1s"), "`timeout` is '1s', not a number of seconds"),
        (lambda: gitsched.schedule([]).explain(1, "web"), "`kind` is an int, not a string"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_other_wrong_arguments_are_named_and_dates_and_loops_are_read() -> None:
    with pytest.raises(ValueError, match="`strictness` is 'harsh', not one of 'upstream', 'protective', 'strict'"):
        gitsched.schedule([], strictness="harsh")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="Deployment shop/web is neither among the documents nor a decision of an API"):
        gitsched.schedule([BODY]).explain("Deployment", "web", "shop")
    here = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert gitsched.schedule([BODY | {"data": {"day": date(2026, 1, 1)}}], now=here).findings == []
    assert gitsched.schedule([BODY]).explain("ConfigMap", "a", "b").groups == ()
    (finding,) = gitsched.validate([BODY | {"data": LOOP}])
    assert "nested more than" in finding.message


def test_documents_with_parts_that_are_shared_again_and_again_are_not_read() -> None:
    """100 levels, and 2 to the power of 100 collections."""
    shared: dict[str, Any] = {}
    for _ in range(100):
        shared = {"a": shared, "b": shared}
    made = gitsched.schedule([BODY, BODY | {"data": shared}], previous=[BODY | {"data": shared}])
    assert [finding.code for finding in made.findings] == ["invalid-document"] * 2
    assert all("more than 200,000 collections" in finding.message for finding in made.findings)
