"""The Applications that an ApplicationSet makes. Source: argoproj/argo-cd/applicationset/controllers/template.

Expressions with values that only the hub knows, or that gitsched does not evaluate, stay in the text, marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.apis.built_in_schemas import find_wrong_types
from gitsched.build.generator_steps import Steps, TooManySteps, count_values
from gitsched.build.go_functions import TemplateError
from gitsched.build.go_templates import Parameters, find_unknown, mark_unknown
from gitsched.build.parameter_sets import GeneratorInput, ParameterGenerator
from gitsched.manifests.kustomization import parse_values
from gitsched.model.document import Body, as_object, get_field, get_text, list_objects
from gitsched.named_tuples import NamedTuple

APPLICATION_SET = "ApplicationSet"
APPLICATION_KEY = ("argoproj.io", "v1alpha1", "Application")
CLUSTER_LABEL = ("argocd.argoproj.io/secret-type", "cluster")
"""The label of Secrets that describe the clusters of Argo CD."""
MAX_APPLICATIONS = 1_000
"""Applications of one ApplicationSet."""
MAX_STEPS = 1_000_000
"""Values that are read, combined and written for one ApplicationSet."""
MAX_STEPS_OF_ALL = 20_000_000
"""The same for all of a commit; those after it have `MIN_STEPS` each."""
MIN_STEPS = 20_000
UNKNOWN_PATCH = mark_unknown("{{templatePatch}}")
"""An option of a source that a template patch may change in a way that is not known."""


class GeneratedApplications(NamedTuple):
    """The Applications of an ApplicationSet; `is_complete` is False if a limit leaves some out. `parameters` are those of each Application.

    `problem` says why Argo CD makes none, or is ""; the Applications then have only what the template says without parameters.
    """

    applications: list[Body]
    is_complete: bool = True
    problem: str = ""
    parameters: list[Parameters] = []


def list_applications(body: Body, source: GeneratorInput) -> GeneratedApplications:
    """Return the Applications of an ApplicationSet, with marks where a value is not known."""
    steps = Steps(min(MAX_STEPS, max(MIN_STEPS, MAX_STEPS_OF_ALL - source.steps)))
    found: dict[str, tuple[Body, Parameters]] = {}
    names: set[str] = set()
    problem = ""
    try:
        for application, parameters in _make_applications(body, source, steps):
            text, name = repr(application), get_text(application, "metadata", "name")
            if len(found) == MAX_APPLICATIONS:
                return _collect(found, is_complete=False)
            if name in names and find_unknown(name) is None:
                problem = f"it makes several Applications with the name {name}"
            names.add(name)
            found.setdefault(text, (application, parameters))
    except TooManySteps:
        return _collect(found, is_complete=False)
    except TemplateError as error:
        problem = str(error)
        found = {"": (_render_without_parameters(body), Parameters({}))}
    finally:
        source.steps += steps.taken
    return _collect(found, problem=problem)


def _collect(found: Mapping[str, tuple[Body, Parameters]], *, is_complete: bool = True, problem: str = "") -> GeneratedApplications:
    applications, parameters = [one for one, _ in found.values()], [one for _, one in found.values()]
    return GeneratedApplications(applications, is_complete, problem, parameters)


def list_unread_generators(body: Body, source: GeneratorInput) -> list[str]:
    """Describe the generators of an ApplicationSet that read what the repository does not have."""
    found: dict[str, None] = {}
    rest = list_objects(as_object(body.get("spec")).get("generators"))
    for generator in rest:
        for kind, inner in generator.items():
            if kind in ("matrix", "merge") and isinstance(inner, dict):
                rest += list_objects(inner.get("generators"))[: MAX_APPLICATIONS - len(rest)]
            elif kind == "clusters" and not source.clusters:
                found["its generator clusters reads clusters that no Secret here describes"] = None
            elif kind == "git" and not source.is_own_url(str(as_object(inner).get("repoURL") or "")):
                found["its generator git reads another repository"] = None
            elif kind not in ("clusters", "git", "list", "selector", "template"):
                found[f"its generator {kind} reads what only Argo CD has"] = None
    return list(found)


def _make_applications(body: Body, source: GeneratorInput, steps: Steps) -> Iterator[tuple[Body, Parameters]]:
    spec = as_object(body.get("spec"))
    patch = spec.get("templatePatch")
    generator = ParameterGenerator(spec, source, steps)
    for entry in list_objects(spec.get("generators")):
        for kind, inner in entry.items():
            if kind == "selector" or not isinstance(inner, dict):
                continue
            template = _fill(as_object(inner.get("template")), as_object(spec.get("template")))
            size = count_values(template) + (len(str(patch)) if patch else 0)
            for parameters in generator.generate({kind: inner}, selector=entry.get("selector")):
                steps.take(size)
                application = _complete(generator.render(template, parameters), body)
                if patch:
                    application = _apply_patch(application, str(generator.render(str(patch), parameters)))
                yield application, parameters


def _complete(application: Body, application_set: Body) -> Body:
    """Return what a template gives as an Application, which is in the namespace of its ApplicationSet."""
    metadata = {**as_object(application.get("metadata")), "namespace": get_field(application_set, "metadata", "namespace")}
    return {"apiVersion": application_set.get("apiVersion"), "kind": "Application", **application, "metadata": metadata}


def _render_without_parameters(body: Body) -> Body:
    """Return the Application of an ApplicationSet that makes none, with a mark in place of each text that has expressions."""

    def hide(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: hide(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [hide(inner) for inner in value]
        return mark_unknown(value) if isinstance(value, str) and "{{" in value else value

    return _complete(hide(as_object(as_object(body.get("spec")).get("template"))), body)


def _fill(template: Body, base: Body) -> Body:
    """Return the template of a generator, with that of its ApplicationSet where it is empty."""
    filled = {**base, **{name: value for name, value in template.items() if value or name not in base}}
    for name, value in template.items():
        if isinstance(value, dict) and isinstance(base.get(name), dict):
            filled[name] = _fill(value, base[name])
    return filled


def _apply_patch(application: Body, patch: str) -> Body:
    """Return an Application after the template patch of its ApplicationSet, which is a strategic merge patch: lists are replaced. If it
    has expressions that are not known, so are the options of all sources."""
    if find_unknown(patch) is None and "$patch" not in patch and "$retainKeys" not in patch:
        values = parse_values(patch.encode())
        if not patch.strip() or (len(values) == 1 and isinstance(values[0], dict)):
            project = get_field(application, "spec", "project")
            patched = _patch(application, values[0] if values else {})
            namespace = get_field(application, "metadata", "namespace")
            metadata = {**as_object(patched.get("metadata")), "namespace": namespace}
            wrong = next(iter(find_wrong_types(APPLICATION_KEY, patched)), None)
            if wrong is not None:
                raise TemplateError(f"its templatePatch gives what is no Application: {wrong.message}")
            return {**patched, "metadata": metadata, "spec": {**as_object(patched.get("spec")), "project": project}}
        raise TemplateError("its templatePatch does not give a mapping")
    spec = as_object(application.get("spec"))
    known = {"source": _hide_options(spec["source"])} if isinstance(spec.get("source"), dict) else {}
    several = {"sources": list(map(_hide_options, list_objects(spec["sources"])))} if spec.get("sources") else {}
    return {**application, "spec": {**spec, **known, **several}}


def _patch(base: Body, patch: Body) -> dict[str, Any]:
    patched = dict(base)
    for name, value in patch.items():
        before = patched.get(name)
        if value is None:
            patched.pop(name, None)
        elif isinstance(value, dict):
            patched[name] = _patch(before if isinstance(before, dict) else {}, value)
        else:
            patched[name] = value
    return patched


def _hide_options(source: Body) -> Body:
    """Return a source with an option that is not known."""
    if source.get("helm"):
        return {**source, "helm": {**as_object(source["helm"]), "releaseName": UNKNOWN_PATCH}}
    return {**source, "kustomize": {"namePrefix": UNKNOWN_PATCH}}
