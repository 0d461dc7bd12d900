"""JSON and YAML that stand as texts inside an object: a ConfigMap's file, say. Order stays; a YAML text loses its comments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NoReturn

from gitsched.apis.karmada.patching import Draft, Inapplicable, alike, parse_pointer
from gitsched.manifests.compose import Tree, compose
from gitsched.manifests.construct import Builder, weigh
from gitsched.manifests.decoding import decode
from gitsched.manifests.limits import LIMITS
from gitsched.model.document import Body
from gitsched.render.yaml import dump


def edit_json(text: str, operations: Iterable[Body]) -> str:
    """The JSON text after a patch, written compactly; as it is where nothing changes, or where there is none."""
    if not text:
        return text
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
        changed = _edit(value, operations, "JSON")
        return text if alike(changed, value) else _write_json(changed)
    except (ValueError, RecursionError) as error:
        if isinstance(error, Inapplicable):
            raise
        raise Inapplicable("the field holds no JSON") from error


def edit_yaml(text: str, operations: Iterable[Body]) -> str:
    """The YAML text after a patch, written anew; as it is where nothing changes."""
    plain = decode(text.encode("utf-8", "surrogatepass"))
    trees = list(compose(plain, LIMITS)) if isinstance(plain, str) else []
    if len(trees) > 1:
        raise Inapplicable("the field holds several YAML documents")
    tree = trees[0] if trees else None
    if not isinstance(tree, Tree) or weigh(tree, LIMITS):
        raise Inapplicable("the field holds no YAML")
    builder = Builder(0)
    value = builder.build(tree.node)
    if builder.faults:
        raise Inapplicable("the field holds no YAML that Kubernetes would read")
    changed = _edit(value, operations, "YAML")
    return text if alike(changed, value) else dump(changed)


def _edit(value: Any, operations: Iterable[Body], language: str) -> Any:
    if not isinstance(value, dict | list):
        raise Inapplicable(f"the field's {language} is neither an object nor a list")
    draft = Draft(value)
    for operation in operations:
        draft.apply(operation["operator"], parse_pointer(operation["subPath"]), operation.get("value"))
    return draft.root


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _write_json(value: Any) -> str:
    """Compact JSON whose numbers keep the digits that they were written with."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_write_json(name)}:{_write_json(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
