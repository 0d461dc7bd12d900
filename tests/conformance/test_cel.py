"""Conformance cases of the Common Expression Language; cel/README.md describes their source and format."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gitsched.apis.ocm.cel.checker import TypeEnvironment, infer_type
from gitsched.apis.ocm.cel.cluster_expressions import PER_CALL_LIMIT
from gitsched.apis.ocm.cel.interpreter import Activation, _compile  # Program returns only whether the value is true
from gitsched.apis.ocm.cel.parser import parse
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.apis.ocm.cel.types import EvaluationError, TypeValue, UInt
from tests.tables import each_row

Body = Mapping[str, Any]
CASES = Path(__file__).with_name("cel")
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "development" / "conformance.md"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def recorded() -> Iterator[Body]:
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


RECORDED = list(recorded())
UNSUPPORTED: Mapping[str, Body] = json.loads((CASES / "unsupported.json").read_text(encoding="utf-8"))
UNSUPPORTED_NAMES = [name for reason in UNSUPPORTED.values() for name in reason["cases"]]
READERS: Mapping[str, Callable[[Any], Any]] = {
    "uint": UInt,
    "double": float,
    "bytes": base64.b64decode,
    "type": TypeValue,
    "list": lambda entries: [read(entry) for entry in entries],
    "map": lambda pairs: {read(key): read(value) for key, value in pairs},
    "timestamp": lambda parts: EPOCH + timedelta(seconds=parts[0], microseconds=parts[1] / 1000),
    "duration": lambda parts: timedelta(seconds=parts[0], microseconds=parts[1] / 1000),
}


def read(tagged: Body) -> Any:
    """Convert a recorded value to a value of the evaluator."""
    ((kind, value),) = tagged.items()
    return READERS[kind](value) if kind in READERS else value


def write(value: Any) -> Any:
    """Return a value with its type, so that only identical values are equal; the order of map keys does not matter."""
    match value:
        case list():
            return "list", [write(entry) for entry in value]
        case dict():
            return "map", sorted((write(key), write(entry)) for key, entry in value.items())
        case TypeValue():
            return "type", value.name
    return type(value).__name__, repr(value)


def evaluate(case: Body) -> tuple[str, Any]:
    """Return the value of an expression, or the phase of its error; `crash` for any other exception."""
    types: Mapping[str, str] = case.get("types", {})
    bindings = {name: read(value) for name, value in case.get("bindings", {}).items()}
    try:
        node = parse(case["expression"])
        if case.get("check", True):
            infer_type(node, TypeEnvironment(types))
        return "value", write(_compile(node, frozenset({*types, *bindings}))(Activation(bindings, PER_CALL_LIMIT)))
    except InvalidExpression:
        return "error", "check"
    except EvaluationError:
        return "error", "run"
    except KeyError as problem:  # an undeclared variable, possible only without the check
        return "crash", str(problem)


def passes(case: Body) -> bool:
    wanted = case.get("ocm", case)
    return evaluate(case) == (("value", write(read(wanted["value"]))) if "value" in wanted else ("error", wanted["error"]))


@each_row("name", sorted({case["name"].split("/")[0] for case in RECORDED}))
def test_expressions_have_the_results_of_the_specification(name: str) -> None:
    cases = [case for case in RECORDED if case["name"].startswith(f"{name}/") and case["name"] not in UNSUPPORTED_NAMES]
    assert cases
    assert [(case["name"], case["expression"], evaluate(case)) for case in cases if not passes(case)] == []


def test_the_list_of_unsupported_cases_is_exact() -> None:
    by_name = {case["name"]: case for case in RECORDED}
    assert len(by_name) == len(RECORDED)
    assert sum(not name.startswith("ocm/") for name in by_name) == 1547
    assert len(set(UNSUPPORTED_NAMES)) == len(UNSUPPORTED_NAMES)
    assert set(UNSUPPORTED_NAMES) <= by_name.keys()
    assert [name for name in UNSUPPORTED_NAMES if passes(by_name[name])] == [], "these cases pass: remove them from the list"


def test_the_documentation_lists_the_unsupported_cases() -> None:
    rows = re.findall(r"^\| (.+) \| (\d+) \|$", DOCUMENTATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(reason["reason"], str(len(reason["cases"]))) for reason in UNSUPPORTED.values()]
