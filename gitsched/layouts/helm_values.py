"""The values that an Application of Argo CD sets for a chart. Source: argoproj/argo-cd/reposerver/repository."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from gitsched.build.go_templates import find_unknown
from gitsched.manifests.kustomization import parse_plugins
from gitsched.model.document import Body, list_objects

_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def read_helm_values(helm: Body) -> tuple[Body, str]:
    """Return the values that `spec.source.helm` sets besides values files, and why they are not known, or ""."""
    if helm.get("fileParameters"):
        return {}, "the Application sets helm.fileParameters: move them to a values file, and add a Bundle"
    own = helm.get("valuesObject")
    text = json.dumps(own) if isinstance(own, dict) else str(helm.get("values") or "")
    if find_unknown(own if isinstance(own, dict) else text) is not None:
        return {}, "the Application sets values that only Argo CD knows: move them to a values file, and add a Bundle"
    values = dict(next(iter(parse_plugins(text.encode())), {}))
    for parameter in list_objects(helm.get("parameters")):
        name = str(parameter.get("name"))
        value = str(parameter.get("value") if parameter.get("value") is not None else "")
        if find_unknown(value) is not None or not _set_value(
            values, name, value if parameter.get("forceString") is True else _read(value)
        ):
            return {}, f"the Application sets the parameter {name}: move it to a values file, and add a Bundle"
    return values, ""


def _read(text: str) -> Any:
    """Return the value of a parameter as `helm --set` reads it."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _set_value(values: Body, name: str, value: Any) -> bool:
    """Set a value whose name has dots between the names of nested ones; return whether that is possible."""
    *parents, last = name.split(".")
    if not last or any(character in name for character in "[]\\,{}"):
        return False
    for parent in parents:
        inner = values.get(parent)
        values[parent] = values = dict(inner) if isinstance(inner, dict) else {}
    values[last] = value
    return True
