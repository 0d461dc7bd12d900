"""The finding, the field of a policy and the format that docs/development/architecture.md adds work as it says, with caches and without."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.docs.test_added_plugins import PROGRAM, ROOT, insert, read_blocks, run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

SECTION = (
    (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8").split("\n## Adding a field of a policy\n")[1]
)
CHECK = read_blocks("Adding a finding")[0]
PROPERTY = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)[0]
READ, HELPER = (textwrap.dedent(block) for block in re.findall(r" +```python\n(.*?)```", SECTION.split("\n## ")[0], re.DOTALL))
(FORMAT,) = read_blocks("Adding an output format")
FINDINGS = "sorted(found.code for found in plans[0].findings), plans[0].findings == plans[1].findings"
POLICY = policy("").replace("  placement:\n", "  placement:\n    excludedProvider: gcp\n")
CLUSTERS = "---\n".join(
    cluster(name).replace("  region:", f"  provider: {provider}\n  region:") for name, provider in (("ash", "aws"), ("gent", "gcp"))
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the code in which everything of these sections is added."""
    for name in ("gitsched", "schemas", "docs"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    package, schemas = tmp_path / "copy" / "gitsched", tmp_path / "copy" / "schemas"
    module = package / "decide" / "workload_decision.py"
    insert(module, "WORKLOAD_CHECKS: tuple", f"{CHECK}\n\n")
    insert(module, "    WorkloadCheck(lambda document: document.key.kind in", "    WorkloadCheck(is_deployment, find_latest),\n")
    module = package / "apis" / "karmada" / "policy" / "propagation_policy.py"
    insert(module, "    return PolicyPlacement(\n", textwrap.indent(READ, "    "))
    insert(module, "def _read_division", f"{HELPER}\n\n")
    insert(schemas / "shared.json", '"clusterTolerations": {', PROPERTY)
    subprocess.run([sys.executable, schemas / "embed.py"], check=True)
    insert(
        package / "cli" / "output.py",
        "    ANNOTATIONS: ",
        '    "csv": "write_csv_report",\n',
    )
    with (package / "cli" / "report_formats.py").open("a") as file:
        file.write(f"\n\n{FORMAT}")
    return tmp_path / "copy"


@pytest.mark.long
def test_what_the_page_adds_works_in_a_copy_of_the_code(tmp_path: Path, copy: Path) -> None:
    fleet = Fleet(tmp_path / "fleet", tmp_path / "cache")
    latest = deployment("web") + "  template: {spec: {containers: [{name: c, image: 'web:latest'}]}}\n"
    history = [
        fleet.commit(
            {"clusters.yaml": CLUSTERS, "policy.yaml": policy(""), "web.yaml": deployment("web"), "api.yaml": deployment("api")}
        ),
        fleet.commit({"policy.yaml": POLICY}, hour=1),
        fleet.commit({"web.yaml": latest}, hour=2),
        fleet.commit({"clusters.yaml": CLUSTERS.replace("gcp", "aws")}, hour=3),
    ]
    program = PROGRAM.replace("placed]))", f"placed, {FINDINGS}]))")
    for number, (kept, fresh, is_complete, placed, codes, is_same) in enumerate(run(fleet, tmp_path, program, copy, history)):
        assert kept == fresh, f"step {number}"
        assert is_same, f"step {number}"
        assert is_complete == (not number), f"step {number}"
        clusters = ["ash"] if number in (1, 2) else ["ash", "gent"]
        assert placed == {"api": clusters, "web": clusters}, f"step {number}"
        assert ("image-latest" in codes) == (number >= 2), f"step {number}"
    command = [sys.executable, "-m", "gitsched", "plan", "--report", "csv=found.csv"]
    subprocess.run(command, cwd=fleet.path, env=os.environ | {"PYTHONPATH": str(copy)}, check=True, capture_output=True)
    assert "warning,image-latest,web.yaml,1\n" in (fleet.path / "found.csv").read_text(encoding="utf-8")
