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

from tests.docs.test_added_plugins import PROGRAM, ROOT, insert, read_blocks, read_section, run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

SECTION = (
    (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8").split("\n## Adding a field of a policy\n")[1]
)
CHECK = read_blocks("Adding a finding")[0]
PROPERTY = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)[0]
READ, HELPER = (textwrap.dedent(block) for block in re.findall(r" +```python\n(.*?)```", SECTION.split("\n## ")[0], re.DOTALL))
SEVERAL = [
    textwrap.dedent(block)
    for block in re.findall(r" +```python\n(.*?)```", "\n".join(read_section("Adding a finding").split("\n### ")[1:]), re.DOTALL)
]
(FORMAT,) = read_blocks("Adding an output format")
FINDINGS = "sorted(found.code for found in plans[0].findings), plans[0].findings == plans[1].findings"
POLICY = policy("").replace("  placement:\n", "  placement:\n    excludedProvider: gcp\n")
SERVICES = "---\n".join(
    (
        policy("gent", name="services", kind="Service"),
        *(
            f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default}}\n"
            "spec: {type: NodePort, ports: [{port: 80, nodePort: %d}]}\n"
            for name in ("one", "two")
        ),
    )
)
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
    add_relation(package / "decide" / "relations")
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


def add_relation(package: Path) -> None:
    """Add the finding about several objects."""
    fact, read, names, relation, query, emit, module, use = SEVERAL
    insert(package / "object_facts.py", "\n\nNO_FACTS = ObjectFacts()", textwrap.indent(fact, "    "))
    insert(package / "object_facts.py", "        features = facts.parts[0][3]", textwrap.indent(read, "        "))
    insert(package / "schema.py", "\n_VERSION = ", f"\n{names}")
    insert(
        package / "schema.py", "                Relation(COMPANIONS, 5),\n", textwrap.indent(f"{relation.rstrip()},\n", " " * 16)
    )
    insert(package / "schema.py", "                Query(DIRECT, ", textwrap.indent(f"{query.rstrip()},\n", " " * 16))
    insert(package / "object_facts.py", "    return tuple(facts._replace(parts=", textwrap.indent(emit, "    "))
    insert(package / "object_facts.py", "    ANNOTATIONS,\n", "    NODE_PORTS,\n")
    (package / "node_ports.py").write_text(module, encoding="utf-8")
    insert(package / "plan_relations.py", "    return tuple(found)\n", textwrap.indent(use, "    "))
    insert(
        package / "plan_relations.py",
        "from gitsched.decide.relations.object_facts import",
        "from gitsched.decide.relations.node_ports import list_taken_ports\n",
    )


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
        fleet.commit({"clusters.yaml": CLUSTERS.replace("gcp", "aws"), "services.yaml": SERVICES % (30001, 30002)}, hour=3),
        fleet.commit({"services.yaml": SERVICES % (30001, 30001)}, hour=4),
    ]
    program = PROGRAM.replace("placed]))", f"placed, {FINDINGS}]))")
    for number, (kept, fresh, is_complete, placed, codes, is_same) in enumerate(run(fleet, tmp_path, program, copy, history)):
        assert kept == fresh, f"step {number}"
        assert is_same, f"step {number}"
        assert is_complete == (not number), f"step {number}"
        clusters = ["ash"] if number in (1, 2) else ["ash", "gent"]
        services = {key: ["gent"] for key in ("one", "two")} if number > 2 else {}
        assert placed == {"api": clusters, "web": clusters, **services}, f"step {number}"
        assert ("image-latest" in codes) == (number >= 2), f"step {number}"
        assert ("node-port-taken" in codes) == (number == 4), f"step {number}"
    command = [sys.executable, "-m", "gitsched", "plan", "--report", "csv=found.csv"]
    subprocess.run(command, cwd=fleet.path, env=os.environ | {"PYTHONPATH": str(copy)}, check=True, capture_output=True)
    assert "warning,image-latest,web.yaml,1\n" in (fleet.path / "found.csv").read_text(encoding="utf-8")
