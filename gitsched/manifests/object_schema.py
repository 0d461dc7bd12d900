"""Check objects against the schema of their kind as an API server decodes them: Kubernetes' own kinds and custom resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.document import Body, as_object, is_encrypted
from gitsched.model.similar_names import find_similar

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

    from gitsched.manifests.schema import SchemaPruner
    from gitsched.model.finding import Issue, Pointer, Severity

DEFINITIONS = "#/$defs/"
_PLACEHOLDER = re.compile(r"\$\{|\{\{|<[^<>]+>|^ref\+|^ENC\[")
"""What delivery tools fill in before they apply an object: variables of Flux, placeholders of Argo CD's plug-ins, SOPS."""
_WHOLE_PLACEHOLDER = re.compile(r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|<[^<>]+>")
_MAIN_FIELDS = frozenset(("spec", "template", "jobTemplate", "containers", "versions"))
MAX_PATTERN_SIZE = 1 << 20
"""Memory in bytes that one compiled pattern of a schema may take."""


def make_object_schema(name: str, definitions: Mapping[str, Body], required: Sequence[str] = ()) -> Body:
    """Return a JSON Schema of the definition `name`, with the definitions that it refers to. The members in `required` are objects."""
    needed: dict[str, Body] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in needed:
            needed[current] = definitions[current]
            waiting += _list_names(definitions[current])
    if required:
        whole = needed[name]
        present = {member: {**whole["properties"][member], "type": "object"} for member in required}
        listed = list(dict.fromkeys((*whole.get("required", ()), *required)))
        needed[name] = {**whole, "properties": {**whole["properties"], **present}, "required": listed}
    return {"$ref": f"{DEFINITIONS}{name}", "$defs": needed}


def _list_names(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return []
    target = schema.get("$ref")
    names = [target.removeprefix(DEFINITIONS)] if isinstance(target, str) else []
    return names + [name for value in schema.values() for name in _list_names(value)]


_REFERENCE_PARENTS = frozenset(
    (
        *("spec", "template", "jobTemplate", "containers", "initContainers", "env", "envFrom", "valueFrom", "configMapKeyRef"),
        *("secretKeyRef", "configMapRef", "secretRef", "volumes", "configMap", "secret", "persistentVolumeClaim", "projected"),
        *("sources", "imagePullSecrets", "scaleTargetRef", "roleRef", "rules", "http", "paths", "backend", "defaultBackend"),
        *("service", "tls", "volumeClaimTemplates", "webhooks", "clientConfig", "subjects", "parameters"),
    )
)


class ObjectSchema:
    """The schema of a kind, compiled. `described` says in warnings who does not know a field.

    The schema allows no unknown fields where the kind lists its fields. The members of `severities` are those of issues by their code,
    where they are no errors. `explained` is the schema with which they are explained, if it is not the same: without patterns that are
    not trusted, because explaining matches them by backtracking.
    """

    def __init__(self, schema: Body, described: str, severities: Mapping[str, Severity], *, explained: Body | None = None) -> None:
        self._schema, self._described, self._severities = schema, described, severities
        self._explained = schema if explained is None else explained

    @cached_property
    def is_usable(self) -> bool:
        """Whether a validator accepts the schema: one of a source may have patterns that are invalid or too large."""
        try:
            return self._compiled is not None
        except ValueError:
            return False

    def find_issues(self, body: Body, *, may_be_patch: bool = True) -> list[Issue]:
        """Return what an API server would refuse in an object, and the fields that the kind does not have; a patch may lack fields."""
        if self._compiled.is_valid(body) or is_encrypted(body):
            return []
        from gitsched.manifests.schema_errors import explain_errors  # lazy: takes 100 ms, and most objects are valid

        pruned, unknown = self._pruner.prune(body)
        issues = [issue for issue in unknown if _find_value(body, issue.pointer) is not None]  # null is the absence of a value
        if not self._compiled.is_valid(pruned):
            is_fragment = may_be_patch and self._is_fragment(body, unknown)
            issues += [
                issue._replace(severity=self._severities.get(issue.code, "error"))
                for issue in explain_errors(pruned, self._explained, self._compiled)
                if not (
                    _is_placeholder(pruned, issue)
                    or (is_fragment and issue.code == "missing-field")
                    or (issue.code == "invalid-field" and _find_value(pruned, issue.pointer) is None)  # of all alternatives
                )
            ]
        return issues[:MAX_ISSUES]

    def _is_fragment(self, body: Body, unknown: Iterable[Issue]) -> bool:
        """Return whether an object lacks what it is for, such as the pod template of a Deployment: then it is probably a patch.

        A patch has something to change in `spec`, and no misspelled name in place of what is lacking.
        """
        if any(not body.get(name) for name in self._list_required() if name in _MAIN_FIELDS):
            return False
        spec = as_object(body.get("spec"))
        lacking = {name.lower(): name for name in self._list_required("spec") if name in _MAIN_FIELDS and name not in spec}
        if not lacking:
            return False
        written = (str(issue.pointer[-1]).lower() for issue in unknown if len(issue.pointer) == 2)
        return not any(find_similar(name, lacking) for name in written)

    def _list_required(self, *path: str) -> list[str]:
        """Return the required members of the object, or of the one at a path."""
        schema: Any = self._schema
        for name in (None, *path):
            schema = schema if name is None else schema.get("properties", {}).get(name, {})
            if "$ref" in schema:
                schema = self._schema.get("$defs", {}).get(schema["$ref"].removeprefix(DEFINITIONS), {})
        return list(schema.get("required", ()))

    @cached_property
    def _compiled(self) -> Draft202012Validator:
        from jsonschema_rs import Draft202012Validator, RegexOptions  # lazy: not every command validates

        return Draft202012Validator(self._schema, pattern_options=RegexOptions(size_limit=MAX_PATTERN_SIZE))

    @cached_property
    def _pruner(self) -> SchemaPruner:
        from gitsched.manifests.schema import SchemaPruner

        return SchemaPruner(self._schema, frozenset(), self._described)


def _is_placeholder(body: Any, issue: Issue) -> bool:
    """Return whether the value of an issue is a text that a delivery tool replaces. With several lines or words, it stays a text.

    kustomize looks for names of other objects below some fields, and refuses a text there, also a placeholder. Source: kustomize,
    api/internal/konfig/builtinpluginconsts/namereference.go.
    """
    value = _find_value(body, issue.pointer)
    if not isinstance(value, str) or "\n" in value or not _PLACEHOLDER.search(value):
        return False
    if issue.code != "wrong-type":
        return True
    has_references = all(isinstance(name, int) or name in _REFERENCE_PARENTS for name in issue.pointer)
    return not (has_references or any(map(str.isspace, _WHOLE_PLACEHOLDER.sub("", value))))


def _find_value(body: Any, pointer: Pointer) -> Any:
    for part in pointer:
        body = body[part]
    return body
