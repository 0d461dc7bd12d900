"""Parse a kustomization: its references and its changes, with their lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from gitsched.manifests.field_locations import MemberIndex
from gitsched.manifests.kustomize import Kustomization, KustomizeChange, KustomizeChart, KustomizeReference, Role
from gitsched.manifests.parsed_file import DEFAULT_LIMITS, Limits
from gitsched.manifests.yaml_composer import YamlDocument, check_aliases, compose_documents, decode_text, read_text
from gitsched.manifests.yaml_errors import ParseError
from gitsched.manifests.yaml_nodes import Constructor, locate_node
from gitsched.model.document import Body, get_field, list_objects
from gitsched.model.finding import Pointer

MAX_ENTRIES = 10_000
"""References, and changes, that are read of one kustomization. One with more counts as changing all its objects."""

EVERYTHING = "{}"
"""The selector of all objects."""

_PATH_LISTS: dict[str, Role] = {
    "resources": "resource",
    "bases": "resource",
    "components": "component",
    "crds": "input",
    "configurations": "input",
    "generators": "input",
    "transformers": "input",
    "validators": "input",
    "patchesStrategicMerge": "input",
}
_WITH_PATH = ("patches", "patchesJson6902", "replacements")
_GENERATORS = ("configMapGenerator", "secretGenerator")
_FOR_ALL = {"namePrefix": "namePrefix", "nameSuffix": "nameSuffix", "commonLabels": "labels", "labels": "labels"}
_FOR_ALL |= {"commonAnnotations": "annotations", "transformers": "transformers"}
_PATH_FIELDS = frozenset(
    (
        *_PATH_LISTS,
        *_WITH_PATH,
        *_GENERATORS,
        *("path", "paths", "files", "envs", "env", "openapi", "helmCharts", "helmChartInflationGenerator", "helmGlobals"),
        *("chartHome", "valuesFile", "additionalValuesFiles", "buildMetadata"),
    )
)
_PATH_FIELDS_IN_LOWER_CASE = frozenset(map(str.lower, _PATH_FIELDS))
_SELECTOR_FIELDS = ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")


def exceeds_limit(kustomization: Kustomization) -> bool:
    """Return whether a kustomization has more references or changes than are read."""
    return len(kustomization.references) > MAX_ENTRIES or len(kustomization.changes) > MAX_ENTRIES


def parse_kustomization(tree: YamlDocument) -> Kustomization:
    """Return what a kustomization refers to and what it changes. Fields of a wrong type are left to kustomize, which reports them.

    One that exceeds the limit has as its last change one of all objects, because those that are not read may concern any object.
    """
    body = Constructor(tree.line, tree.node).value
    if not isinstance(body, dict):
        return Kustomization()

    find = MemberIndex().find_member

    def locate(*pointer: str | int) -> tuple[int, int]:
        return locate_node(tree, tree.node, pointer, find=find)

    found = Kustomization(
        body.get("kind") == "Component",
        _read_references(body, locate),
        _read_changes(body, locate),
        body.get("buildMetadata") is not None,
        bool(body.get("helmChartInflationGenerator")),
        tuple(_list_misspelt(body, locate)),
        tuple(_list_charts(body, locate)),
    )
    if not exceeds_limit(found):
        return found
    unread = KustomizeChange("all", "", f"more than {MAX_ENTRIES} references or changes", locate()[0])
    return found._replace(changes=(*found.changes, unread))


def _list_charts(body: Body, locate: _Locate) -> Iterator[KustomizeChart]:
    home = get_field(body, "helmGlobals", "chartHome")
    for index, entry in enumerate(_as_list(body.get("helmCharts"))):
        if isinstance(entry, dict):
            yield read_chart({"chartHome": home, **entry}, locate("helmCharts", index)[0])


def read_chart(entry: Body, line: int) -> KustomizeChart:
    """Return the chart of an entry of helmCharts, or of the configuration of the plug-in HelmChartInflationGenerator.

    The directory is that of kustomize's HelmChartInflationGenerator (api/internal/builtins): with a repository and a version, it
    is one level deeper.
    """
    name, version, repository, home = (
        entry[field] if isinstance(entry.get(field), str) else "" for field in ("name", "version", "repo", "chartHome")
    )
    directory = f"{home or 'charts'}/{name}-{version}" if version and repository else home or "charts"
    return KustomizeChart(name, version, repository, f"{directory}/{name}", line)


def _list_misspelt(body: Body, locate: _Locate) -> Iterator[tuple[str, int]]:
    """Yield the fields that name files, in another case than documented: Go's JSON decoder accepts them, so kustomize reads the files."""
    rest: list[tuple[Pointer, Any]] = [((), body)]
    while rest:
        pointer, value = rest.pop()
        if isinstance(value, dict):
            for name, member in value.items():
                if name not in _PATH_FIELDS and name.lower() in _PATH_FIELDS_IN_LOWER_CASE:
                    yield name, locate(*pointer, name)[0]
                rest.append(((*pointer, name), member))
        elif isinstance(value, list):
            rest.extend(((*pointer, index), entry) for index, entry in enumerate(value))


def parse_plugins(data: bytes) -> list[Body]:
    """Return the documents of a file with the configuration of plug-ins; none if it cannot be read."""
    return [value for value in parse_values(data) if isinstance(value, dict)]


def parse_values(data: bytes) -> list[Any]:
    """Return the values of the YAML documents of a file, mappings or others; none if it cannot be read."""
    text = decode_text(data) if len(data) <= DEFAULT_LIMITS.size else ""
    values: list[Any] = []
    for tree in compose_documents(text, DEFAULT_LIMITS) if isinstance(text, str) else ():
        if not isinstance(tree, YamlDocument) or check_aliases(tree, DEFAULT_LIMITS):
            return []
        values.append(Constructor(tree.line, tree.node).value)
    return values


_Locate = Callable[..., tuple[int, int]]


def _read_references(body: Body, locate: _Locate) -> tuple[KustomizeReference, ...]:
    found: dict[tuple[Role, str, str], KustomizeReference] = {}
    for role, pointer, path in _list_paths(body):
        key = role, str(pointer[0]), path
        if path and "\n" not in path and key not in found:
            found[key] = KustomizeReference(role, key[1], path, *locate(*pointer))
            if len(found) > MAX_ENTRIES:
                break
    return tuple(found.values())


def _list_paths(body: Body) -> Iterator[tuple[Role, Pointer, str]]:
    for field, role in _PATH_LISTS.items():
        for index, path in enumerate(_as_list(body.get(field))):
            if isinstance(path, str) and not _is_inline(path):
                yield role, (field, index), path
            elif isinstance(path, str) and field in ("generators", "transformers", "validators"):
                for plugin in parse_plugins(path.encode("utf-8", "surrogatepass")):
                    yield from (("input", (field, index), name) for name in list_plugin_paths(plugin))
    for field in _WITH_PATH:
        for index, entry in enumerate(_as_list(body.get(field))):
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield "input", (field, index, "path"), entry["path"]
    for field in _GENERATORS:
        for index, generator in enumerate(_as_list(body.get(field))):
            if isinstance(generator, dict):
                for key in ("files", "envs"):
                    for position, path in enumerate(_as_list(generator.get(key))):
                        if isinstance(path, str):
                            yield "input", (field, index, key, position), path.rpartition("=")[2] if key == "files" else path
                if isinstance(generator.get("env"), str):
                    yield "input", (field, index, "env"), generator["env"]
    for index, chart in enumerate(_as_list(body.get("helmCharts"))):
        if isinstance(chart, dict):
            if isinstance(chart.get("valuesFile"), str):
                yield "input", ("helmCharts", index, "valuesFile"), chart["valuesFile"]
            for position, path in enumerate(_as_list(chart.get("additionalValuesFiles"))):
                if isinstance(path, str):
                    yield "input", ("helmCharts", index, "additionalValuesFiles", position), path
    schema = get_field(body, "openapi", "path")
    if isinstance(schema, str):
        yield "input", ("openapi", "path"), schema


def list_plugin_paths(body: Body) -> Iterator[str]:
    """Yield the paths that the configuration of a built-in generator or transformer names."""
    for key in ("path", "env", "valuesFile"):
        if isinstance(body.get(key), str):
            yield body[key]
    for key in ("paths", "files", "envs", "additionalValuesFiles"):
        for path in _as_list(body.get(key)):
            if isinstance(path, str) and not _is_inline(path):
                yield path.rpartition("=")[2] if key == "files" else path
    for entry in list_objects(body.get("replacements")):
        if isinstance(entry.get("path"), str):
            yield entry["path"]


def _is_inline(text: str) -> bool:
    """Return whether an entry is YAML in place of a path, which kustomize accepts in some fields."""
    return "\n" in text or text.lstrip().startswith(("{", "["))


def _read_changes(body: Body, locate: _Locate) -> tuple[KustomizeChange, ...]:
    found: list[KustomizeChange] = []

    def add(kind: str, value: str, text: str, *pointer: str | int) -> None:
        if len(found) <= MAX_ENTRIES:
            found.append(KustomizeChange(kind, value, text, locate(*pointer)[0]))

    namespace = body.get("namespace")
    if isinstance(namespace, str) and namespace:
        add("namespace", namespace, f"namespace {namespace}", "namespace")
    for field, text in _FOR_ALL.items():
        value = body.get(field)
        if value:
            add("all", "", f"{text} {value}" if isinstance(value, str) else text, field)
    if "managedByLabel" in _as_list(body.get("buildMetadata")):
        add("all", "", "labels", "buildMetadata")
    for field, kind in (("images", "image"), ("replicas", "name"), ("vars", "mention")):
        for index, entry in enumerate(_as_list(body.get(field))):
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str) and name:
                add(kind, f"$({name})" if field == "vars" else name, f"{field} {name}", field, index)
    for field in _GENERATORS:
        for index, entry in enumerate(_as_list(body.get(field))):
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str) and name:
                kind = "ConfigMap" if field == "configMapGenerator" else "Secret"
                add("mention", name, f"the generated {kind} {name}", field, index)
    for index, path in enumerate(_as_list(body.get("patchesStrategicMerge"))):
        if isinstance(path, str):
            add(*_describe_patch_source({"patch" if _is_inline(path) else "path": path}), "patchesStrategicMerge", index)
    for field in ("patches", "patchesJson6902"):
        for index, entry in enumerate(_as_list(body.get(field))):
            if isinstance(entry, dict):
                add(*_describe_patch(entry), field, index)
    for index, entry in enumerate(_as_list(body.get("replacements"))):
        selected = [target.get("select") for target in list_objects(entry.get("targets"))] if isinstance(entry, dict) else []
        for select in selected or [None]:
            value = _write_selector(select) if isinstance(select, dict) else EVERYTHING
            add("target", value, "replacements", "replacements", index)
    return tuple(found)


def _describe_patch(entry: Body) -> tuple[str, str, str]:
    target = entry.get("target")
    if not isinstance(target, dict):
        return _describe_patch_source(entry)
    path = entry.get("path")
    return "target", _write_selector(target), f"patch {path}" if isinstance(path, str) else "a patch"


def _describe_patch_source(entry: Body) -> tuple[str, str, str]:
    path, text = entry.get("path"), entry.get("patch")
    if isinstance(path, str):
        return "patch", path, f"patch {path}"
    return "target", _write_inline_selectors(text), "a patch"


def _write_selector(target: Body) -> str:
    return json.dumps({name: target[name] for name in _SELECTOR_FIELDS if isinstance(target.get(name), str) and target[name]})


def _write_inline_selectors(text: Any) -> str:
    """Return the selector of a patch that is written in the kustomization: the object that it names, or all objects."""
    trees = list(islice(compose_documents(text, DEFAULT_LIMITS), 2)) if isinstance(text, str) else []
    if len(trees) != 1 or not isinstance(trees[0], YamlDocument) or ("*" in text and check_aliases(trees[0], DEFAULT_LIMITS)):
        return EVERYTHING
    body = Constructor(0, trees[0].node).value
    return write_identity_selector(body) if isinstance(body, dict) else EVERYTHING


def write_identity_selector(body: Body) -> str:
    """Return the selector of the object that a strategic merge patch names."""
    group, _, version = str(body.get("apiVersion") or "").rpartition("/")
    name = str(get_field(body, "metadata", "name") or "")
    selector = {"group": group, "version": version, "kind": str(body.get("kind") or ""), "exactName": name}
    namespace = get_field(body, "metadata", "namespace")
    if isinstance(namespace, str) and namespace:
        selector["exactNamespace"] = namespace
    return json.dumps(selector)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def list_kustomize_resources(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return the resources of a kustomization as written; none if it is broken."""
    source = read_text(data) if len(data) <= limits.size else None
    if source is None or isinstance(source, ParseError):
        return ()
    tree = next(compose_documents(source.text, limits), None)
    if not isinstance(tree, YamlDocument) or check_aliases(tree, limits):
        return ()
    value = Constructor(tree.line).construct(tree.node)
    entries = value.get("resources") if isinstance(value, dict) else None
    return tuple(entry for entry in entries if isinstance(entry, str)) if isinstance(entries, list) else ()
