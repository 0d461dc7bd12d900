"""Resolve the variables that a Flux Kustomization substitutes: its own, and those of ConfigMaps and Secrets of the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gitsched.build.path_recipe import Substitution, ValueSource, decode_value
from gitsched.decide.catalog import RawDocument
from gitsched.manifests.envsubst import VariableValues
from gitsched.model.document import as_object, as_string_map, is_encrypted
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.tool_documents import choose_nearest

FindDocuments = Callable[[str, str], Iterable[RawDocument]]
"""Return the documents of a kind with a name."""


class ResolvedVariables(NamedTuple):
    """The variables of a Kustomization. `missing` describes the sources whose values are not known."""

    values: VariableValues
    missing: tuple[str, ...] = ()

    def describe_missing(self, variable: str) -> str:
        """Say why a variable has no value, and what to do."""
        if self.missing and (variable in self.values.unknown or self.values.incomplete):
            return (
                f"{', '.join(self.missing)}. Set it in spec.postBuild.substitute or in a ConfigMap of this "
                "repository that substituteFrom names"
            )
        return (
            f"nothing sets it. Set it in spec.postBuild.substitute, write ${{{variable}:=default}}, or write $${{{variable}}} for the "
            "literal text"
        )


def resolve_variables(substitution: Substitution, namespace: str, path: str, find_documents: FindDocuments) -> ResolvedVariables:
    """Return the variables of a Kustomization that is in a namespace and in the file at `path`."""
    values: dict[str, str] = {}
    unknown: set[str] = set()
    missing: list[str] = []
    incomplete = False
    for source in substitution.sources:
        name = f"{source.kind} {namespace}/{source.name}"
        found = [document for document in find_documents(source.kind, source.name) if document.namespace in (namespace, "")]
        document = choose_nearest(found, path)
        if document is None:
            incomplete = True
            missing.append(f"{name} is {'defined more than once' if found else 'not in this repository'}")
        elif document.broken:
            incomplete = True
            missing.append(f"{name} has an error")
        elif is_encrypted(document.body):
            names = {name for field in ("data", "stringData") for name in as_object(document.body.get(field))}
            unknown |= names
            values = {name: value for name, value in values.items() if name not in names}
            missing.append(f"{name} is encrypted")
        else:
            read = _read_values(source, document)
            unknown -= read.keys()
            values |= read
    own = {name: value.replace("\n", "") for name, value in substitution.values.items()}
    return ResolvedVariables(VariableValues({**values, **own}, frozenset(unknown - own.keys()), incomplete), tuple(missing))


def _read_values(source: ValueSource, document: RawDocument) -> dict[str, str]:
    values = as_string_map(document.body.get("data"))
    if source.kind == "Secret":
        values = {name: decode_value(text) for name, text in values.items()} | as_string_map(document.body.get("stringData"))
    return {name: value.replace("\n", "") for name, value in values.items()}
