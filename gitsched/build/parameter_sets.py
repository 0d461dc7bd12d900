"""The parameters that the generators of an ApplicationSet produce. Source: argoproj/argo-cd/applicationset/generators."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from gitsched.build.commit_files import ReadableFiles, list_directories
from gitsched.build.generator_patterns import describe_path, flatten_values, select_directories, select_files
from gitsched.build.generator_steps import Steps, count_values
from gitsched.build.go_functions import TemplateError, TextMap, format_value, normalize_name
from gitsched.build.go_templates import Parameters, find_unknown, mark_unknown, render_go_template
from gitsched.build.path_recipe import decode_value
from gitsched.manifests.kustomization import parse_values
from gitsched.model.document import Body, as_object, list_objects, read_annotations, read_labels
from gitsched.model.labels import parse_selector

IN_CLUSTER, IN_CLUSTER_SERVER = "in-cluster", "https://kubernetes.default.svc"
"""The cluster in which Argo CD runs, and its URL."""


class GeneratorInput:
    """What generators read: the files of the repository, the Secrets of clusters, and whether a URL is that of the repository. `steps` are
    those that the ApplicationSets of a commit have taken, and `read` the files whose values they have read."""

    def __init__(self, commit: ReadableFiles, clusters: tuple[Body, ...], is_own_url: Callable[[str], bool]) -> None:
        self.commit, self.clusters, self.is_own_url = commit, clusters, is_own_url
        self.steps, self.read = 0, set[str]()

    @cached_property
    def files(self) -> list[str]:
        """The paths of all files."""
        return sorted(self.commit.entries)

    @cached_property
    def directories(self) -> list[str]:
        """The paths of all directories but the root."""
        return sorted(list_directories(self.commit.entries) - {"."})


class ParameterGenerator:
    """Produces the parameters of one ApplicationSet, one set after the other, in a limited number of steps.

    Each method raises TemplateError where Argo CD fails, and TooManySteps.
    """

    def __init__(self, spec: Body, source: GeneratorInput, steps: Steps) -> None:
        self._source, self._steps = source, steps
        self._go = spec.get("goTemplate") is True
        options = spec.get("goTemplateOptions")
        named = [str(option) for option in options if str(option).startswith("missingkey=")] if isinstance(options, list) else []
        missing = named[-1].removeprefix("missingkey=") if named else "default"
        self._missing_key = {"invalid": "default"}.get(missing, missing)

    def generate(self, generator: Body, depth: int = 0, selector: Any = None) -> Iterator[Parameters]:
        """Yield the parameters that a generator gives; one open set for a generator that asks other servers."""
        selector = selector if selector is not None else generator.get("selector")
        parsed = parse_selector(selector, any_value=True) if selector is not None else None
        if selector is not None and parsed is None:
            raise TemplateError("the selector of a generator is not valid")
        self._steps.take(count_values(generator))
        for kind, body in generator.items():
            if kind == "selector" or not isinstance(body, dict):
                continue
            for entry in self._read_generator(kind, body, depth):
                self._steps.take(1 + len(entry.values))
                if parsed is None or entry.is_open:
                    yield entry
                    continue
                flat = flatten_values(dict(entry.values))
                self._steps.take(len(flat))
                if parsed.matches({name: _print_flat(value) for name, value in flat.items()}):
                    yield entry

    def render(self, value: Any, parameters: Parameters) -> Any:
        """Return a value with its texts, and the names in its mappings, rendered."""
        if isinstance(value, dict):
            return {self.render(name, parameters): self.render(inner, parameters) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.render(inner, parameters) for inner in value]
        if not isinstance(value, str) or "{{" not in value:
            return value
        if not parameters.values and not parameters.is_open:
            return value
        self._steps.take(1 + value.count("{{"))
        return self._render_text(value, parameters)

    def _render_text(self, text: str, parameters: Parameters) -> str:
        if self._go:
            return render_go_template(text, parameters, self._missing_key, self._steps.take)
        parts: list[str] = []
        rest = text
        while (start := rest.find("{{")) >= 0 and (end := rest.find("}}", start)) >= 0:
            value = parameters.values.get(rest[start + 2 : end].strip())
            found = value if isinstance(value, str) else rest[start : end + 2]
            self._steps.take(len(found) >> 6)
            parts += rest[:start], mark_unknown(found) if not isinstance(value, str) and parameters.is_open else found
            rest = rest[end + 2 :]
        return "".join((*parts, rest))

    def _read_generator(self, kind: str, body: Body, depth: int) -> Iterator[Parameters]:
        if kind == "list":
            yield from self._read_list(body)
        elif kind in ("git", "clusters"):
            for entry in self._read_git(body) if kind == "git" else self._read_clusters(body):
                yield self._add_values(body, entry)
        elif kind in ("matrix", "merge"):
            generators = list_objects(body.get("generators"))
            yield from (
                self._combine(generators, depth) if kind == "matrix" else self._join(generators, body.get("mergeKeys"), depth)
            )
        else:
            yield self._add_values(body, Parameters({}, True))

    def _add_values(self, body: Body, entry: Parameters) -> Parameters:
        values = {name: self.render(value, entry) for name, value in as_object(body.get("values")).items()}
        if not values:
            return entry
        added = {"values": values} if self._go else {f"values.{name}": value for name, value in values.items()}
        return entry._replace(values={**entry.values, **added})

    def _read_list(self, body: Body) -> Iterator[Parameters]:
        for element in list_objects(body.get("elements")):
            yield Parameters(element if self._go else _read_element(element))
        text = body.get("elementsYaml")
        if not isinstance(text, str) or not text.strip():
            return
        self._steps.take(len(text))
        if find_unknown(text) is not None:
            yield Parameters({}, True)
            return
        for value in parse_values(text.encode())[:1] or [False]:
            if value is not None and not (isinstance(value, list) and all(isinstance(entry, dict | None) for entry in value)):
                raise TemplateError("elementsYaml is not a list of mappings")
            yield from (Parameters(entry or {}) for entry in value or ())

    def _read_git(self, body: Body) -> Iterator[Parameters]:
        source = self._source
        directories, files = body.get("directories"), body.get("files")
        if not source.is_own_url(str(body.get("repoURL") or "")) or find_unknown([directories, files]) is not None:
            yield Parameters({}, True)
            return
        prefix = str(body.get("pathParamPrefix") or "")
        if directories:
            for path in select_directories(directories, source.directories, self._steps):
                yield Parameters(describe_path(path, None, prefix, self._go))
            return
        if not files:
            raise TemplateError("its generator git has neither directories nor files")
        for path in select_files(files, source.files, self._steps):
            described = describe_path(posixpath.dirname(path) or ".", posixpath.basename(path), prefix, self._go)
            data = source.commit.read_blob(source.commit.entries[path][0])
            source.read.add(path)
            self._steps.take(len(data))
            for entry in _read_parameters(path, data):
                yield Parameters({**(entry if self._go else _flatten_texts(entry)), **described})

    def _read_clusters(self, body: Body) -> Iterator[Parameters]:
        """Yield the parameters of the clusters that the commit describes; an open set if it has none, as they are on the hub."""
        if not self._source.clusters:
            yield Parameters({}, True)
            return
        selector = as_object(body.get("selector"))
        parsed = parse_selector(selector)
        if parsed is None:
            raise TemplateError("the selector of its generator clusters is not valid")
        described = (self._describe_cluster(secret) for secret in self._source.clusters if parsed.matches(read_labels(secret)))
        found = list({entry["name"]: entry for entry in described}.values())
        is_described = any(entry["server"] == IN_CLUSTER_SERVER for entry in found)
        if not (selector.get("matchLabels") or selector.get("matchExpressions") or is_described):
            names = {"name": IN_CLUSTER, "nameNormalized": IN_CLUSTER, "server": IN_CLUSTER_SERVER, "project": ""}
            found.append(names)
        if body.get("flatList") is True:
            yield Parameters({"clusters": found})
        else:
            yield from map(Parameters, found)

    def _describe_cluster(self, secret: Body) -> dict[str, Any]:
        data = {name: decode_value(str(value)) for name, value in as_object(secret.get("data")).items()}
        data |= {name: str(value) for name, value in as_object(secret.get("stringData")).items()}
        name = data.get("name", "")  # as in Argo CD, which does not use the name of the Secret
        known = {"name": name, "nameNormalized": normalize_name(name), "project": data.get("project", "")}
        known["server"] = data.get("server") or mark_unknown("{{server}}")
        marks = {"labels": read_labels(secret), "annotations": read_annotations(secret)}
        if self._go:
            return {**known, "metadata": {field: TextMap(values) for field, values in marks.items() if values}}
        flat = {f"metadata.{field}.{key}": value for field, values in marks.items() for key, value in values.items()}
        return {**known, **flat}

    def _generate_inner(self, generator: Body, depth: int, selector: Any = None) -> Iterator[Parameters]:
        kinds = [kind for kind, body in generator.items() if kind not in ("selector", "template") and isinstance(body, dict)]
        if len(kinds) != 1 or (depth > 0 and kinds[0] in ("matrix", "merge")):
            problem = "nested more than once" if len(kinds) == 1 else "not one each"
            raise TemplateError(f"the generators in its matrix or merge generator are {problem}")
        return self.generate(generator, depth + 1, selector)

    def _combine(self, generators: list[Body], depth: int) -> Iterator[Parameters]:
        """Yield the combinations of a matrix. The second generator may have expressions with the parameters of the first."""
        if len(generators) != 2:
            raise TemplateError(f"its matrix generator has {len(generators)} generators, and Argo CD combines exactly two")
        first, second = generators
        size = count_values(second)
        for row in self._generate_inner(first, depth):
            self._steps.take(size)
            rendered = self._render_generator(second, row) if row.values or row.is_open else second
            for entry in self._generate_inner(rendered, depth, second.get("selector")):
                values = self._merge_rows(row.values, entry.values)
                yield Parameters(values, row.is_open or entry.is_open)

    def _merge_rows(self, first: Any, second: Any) -> dict[str, Any]:
        if self._go:
            return merge_values(second, first)
        texts = [{name: _print_flat(value) for name, value in row.items()} for row in (first, second)]
        twice = next((name for name, value in texts[1].items() if texts[0].get(name, value) != value), None)
        if twice is not None:
            raise TemplateError(f"the generators of its matrix give different values of {twice}")
        return {**texts[0], **texts[1]}

    def _render_generator(self, generator: Body, row: Parameters) -> Body:
        """Return the second generator of a matrix with the parameters of the first. Its `values` may have parameters of its own."""
        return {
            kind: self._render_values(body, row) if isinstance(body, dict) and kind != "selector" else body
            for kind, body in generator.items()
        }

    def _render_values(self, body: Body, row: Parameters) -> Body:
        rendered = self.render({name: value for name, value in body.items() if name != "values"}, row)
        if "values" not in body:
            return dict(rendered)
        values = {name: self._render_known(value, row) for name, value in as_object(body["values"]).items()}
        return {**rendered, "values": values}

    def _render_known(self, value: Any, row: Parameters) -> Any:
        if not self._go:
            return self.render(value, row._replace(is_open=False))
        try:
            return value if not isinstance(value, str) else render_go_template(value, row._replace(is_open=False), "error")
        except TemplateError:
            return value

    def _join(self, generators: list[Body], keys: Any, depth: int) -> Iterator[Parameters]:
        """Yield the parameters of the first generator, each with those of the others that have the same values of the keys.

        Where the first one asks another server, and gives no such value, each set of the others may belong to one of its own.
        """
        names = sorted({str(name) for name in keys}) if isinstance(keys, list) else []
        if len(generators) < 2:
            raise TemplateError("its merge generator has fewer than two generators")
        if not names:
            raise TemplateError("its merge generator has no mergeKeys")
        joined: dict[str, Parameters] = {}
        unknown, possible = json.dumps([None] * len(names)), list[Parameters]()
        for position, generator in enumerate(generators):
            seen: set[str] = set()
            for entry in self._generate_inner(generator, depth):
                value = json.dumps([entry.values.get(name) for name in names], sort_keys=True, default=str)
                if value in seen and not entry.is_open:
                    raise TemplateError(f"a generator of its merge gives the same {', '.join(names)} twice")
                seen.add(value)
                if position == 0:
                    joined.setdefault(value, entry)
                elif value in joined:
                    joined[value] = self._override(joined[value], entry)
                elif unknown in joined and joined[unknown].is_open:
                    possible.append(self._override(joined[unknown], entry))
        if possible:
            del joined[unknown]
        yield from (*joined.values(), *possible)

    def _override(self, before: Parameters, entry: Parameters) -> Parameters:
        self._steps.take(len(entry.values))
        values = merge_values(before.values, entry.values) if self._go else {**before.values, **entry.values}
        return Parameters(values, before.is_open or entry.is_open)


def merge_values(base: Any, override: Any) -> dict[str, Any]:
    """Return a mapping with the values of another, which overrule its own; mappings in both are merged. Source: mergo.WithOverride."""
    merged = dict(base)
    for name, value in override.items():
        before = merged.get(name)
        merged[name] = merge_values(before, value) if before and isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _print_flat(value: Any) -> str:
    return "<nil>" if value is None else format_value(value)


def _flatten_texts(entry: Body) -> dict[str, Any]:
    return {name: _print_flat(value) for name, value in flatten_values(entry).items()}


def _read_element(element: Body) -> dict[str, Any]:
    """Return an element of a list generator without Go templates, whose values are texts."""
    found: dict[str, Any] = {}
    for name, value in element.items():
        inner = (
            {f"values.{key}": each for key, each in value.items()}
            if name == "values" and isinstance(value, dict)
            else {name: value}
        )
        wrong = next((key for key, each in inner.items() if not isinstance(each, str)), None)
        if wrong is not None:
            raise TemplateError(f"the value of {wrong} in its list generator is not a text: quote it, or set goTemplate")
        found |= inner
    return found


def _read_parameters(path: str, data: bytes) -> list[Body]:
    """Return the sets of parameters in a file of a git generator: one mapping, or a list of mappings."""
    value = next(iter(parse_values(data)), None if not data.strip() else False)
    if value is None:
        return [{}]
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TemplateError(f"{path} is neither a mapping nor a list of mappings")
    return entries
