"""Check objects as the API server of a cluster does: Kubernetes' own kinds against their schemas, which `schemas/kubernetes.py` writes, and
other kinds against the types of the fields that are read of them."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from gitsched.apis.schemas import find_schema_directory
from gitsched.manifests.built_in_kinds import BuiltInKinds

if TYPE_CHECKING:
    from gitsched.manifests.object_schema import ObjectSchema
    from gitsched.manifests.schema import SchemaKey
    from gitsched.model.document import Body
    from gitsched.model.finding import Issue

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


def find_object_issues(key: SchemaKey, body: Body, *, may_be_patch: bool = True) -> list[Issue]:
    """Return the issues of an object of any kind but those of policy APIs. TypeError or ValueError for a value that JSON does not have."""
    built_in = load_built_in_kinds()
    return built_in.find_issues(key, body, may_be_patch=may_be_patch) if key[0] in built_in.groups else find_wrong_types(key, body)


def find_wrong_types(key: SchemaKey, body: Body) -> list[Issue]:
    """Return the fields of an object of another project's kind that are read and have another type than they have there."""
    schema = _compile_fields(key[0], key[2])
    return schema.find_issues(body) if schema is not None else []


@lru_cache(maxsize=1024)
def _compile_fields(group: str, kind: str) -> ObjectSchema | None:
    from gitsched.kinds.field_types import make_field_schema  # many sources have only kinds with schemas
    from gitsched.manifests.object_schema import ObjectSchema

    schema = make_field_schema(group, kind)
    return ObjectSchema(schema, "", {}) if schema is not None else None
