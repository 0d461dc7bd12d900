"""Check the layers: imports only go down, and the core uses no I/O, clock or randomness."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables import each_row

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gitsched"
CORE = ("diff", "simulate", "decide", "apis", "schedule", "manifests", "render", "report", "kinds", "model", "query")
CONCURRENCY = {"asyncio", "multiprocessing", "signal", "threading"}
OUTSIDE = {"fcntl", "http", "httpx", "os", "pathlib", "pygit2", "select", "shutil", "socket", "sqlite3", "ssl", "subprocess"}
FORBIDDEN = CONCURRENCY | OUTSIDE | {"random", "secrets", "tempfile", "time", "urllib.request"}
FORBIDDEN_CALLS = {"now", "today", "utcnow", "uuid1", "uuid4", "getnode"}
FORBIDDEN_BUILTINS = {"open", "print", "input", "breakpoint", "__import__"}


def is_forbidden(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in FORBIDDEN)


def offences(source: str) -> list[tuple[int, str]]:
    """Return what a core module may not contain, as (line, code)."""
    found: set[tuple[int, str]] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {(node.lineno, f"import {n.name}") for n in names if is_forbidden(n.name)}
            case ast.ImportFrom(module=str(module), level=0, names=names):
                if is_forbidden(module):
                    found.add((node.lineno, f"from {module}"))
                found |= {(node.lineno, f"from {module} import {n.name}") for n in names if n.name in FORBIDDEN_CALLS}
            case ast.Call(func=ast.Attribute(attr=name)) if name in FORBIDDEN_CALLS:
                found.add((node.lineno, f".{name}"))
            case ast.Attribute(
                value=ast.Name(id="datetime" | "date" | "uuid") | ast.Attribute(attr="datetime" | "date"), attr=name
            ):
                found |= {(node.lineno, f".{name}")} if name in FORBIDDEN_CALLS else set()
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_BUILTINS:
                found.add((node.lineno, f"{name}()"))
    return sorted(found)


def core_modules() -> list[Path]:
    return sorted(path for room in CORE for path in [*PACKAGE.glob(f"{room}.py"), *PACKAGE.glob(f"{room}/**/*.py")])


def test_imports_only_go_down_the_layers() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    run = subprocess.run([sys.executable, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "kept" in run.stdout


@each_row("path", core_modules())
def test_the_core_has_no_input_output_clock_or_randomness(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8")) == []


def test_every_package_of_the_core_is_checked() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in core_modules()}
    assert rooms == set(CORE)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import os.path", "import os.path"),
        ("from subprocess import run", "from subprocess"),
        ("import urllib.request", "import urllib.request"),
        ("def later():\n    import random", "import random"),
        ("from datetime import datetime\nx = datetime.now()", ".now"),
        ("import datetime\nf = datetime.date.today", ".today"),
        ("import uuid\nx = uuid.uuid4()", ".uuid4"),
        ("from uuid import uuid4", "from uuid import uuid4"),
        ("open('x')", "open()"),
    ],
)
def test_the_check_finds_a_violation(source: str, what: str) -> None:
    assert [text for _, text in offences(source)] == [what]


@pytest.mark.parametrize(
    "source",
    [
        "from urllib.parse import urlsplit",
        "from uuid import uuid5",
        "from datetime import UTC, datetime\nnow = datetime.fromtimestamp(0, UTC)",
        "moment = inputs.now",
    ],
)
def test_the_check_accepts_pure_code(source: str) -> None:
    assert offences(source) == []
