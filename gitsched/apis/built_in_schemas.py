"""Load the schemas of Kubernetes' own kinds, which `schemas/kubernetes.py` writes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from gitsched.apis.schemas import find_schema_directory
from gitsched.manifests.built_in_kinds import BuiltInKinds

FILE = ("kubernetes.io", "openapi.json")


@cache
def load_built_in_kinds() -> BuiltInKinds:
    """Return the kinds of Kubernetes."""
    document = read_built_in_schemas()
    names = {(group, version, kind): name for key, name in document["kinds"].items() for group, version, kind in [key.split("/")]}
    return BuiltInKinds(document["source"]["version"], names, document["definitions"])


def read_built_in_schemas() -> Any:
    """Return the file: its `source`, the definitions of `kinds`, and all `definitions`."""
    return json.loads(find_schema_directory().joinpath(*FILE).read_bytes())
