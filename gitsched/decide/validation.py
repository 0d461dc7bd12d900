"""Validate one document: apply defaults, then the schema, then the rules that a schema cannot express."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from gitsched.apis.built_in_schemas import find_wrong_types, load_built_in_kinds
from gitsched.apis.gitsched import config
from gitsched.apis.gitsched.operator_config import KIND as OPERATOR_KIND
from gitsched.apis.proposals import set_at
from gitsched.apis.registered import Registered
from gitsched.apis.schemas import has_field_table, list_schemas, make_field_validator, shipped_schemas
from gitsched.decide.registry import apis_by_group, policy_apis
from gitsched.manifests.object_meta import classify_document, validate_object_meta
from gitsched.manifests.schema import SchemaValidator, Strictness, get_schema_key
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Body, get_field, get_text, parse_api_group
from gitsched.model.finding import Finding, Issue, Location, ValidationResult, locate_origin
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.model.tenants import TENANT_KIND
from gitsched.model.variants import BUNDLE_KIND

if TYPE_CHECKING:
    from gitsched.apis.policy_api import DocumentValidator, PolicyAPI, SchemaKey
    from gitsched.decide.catalog import RawDocument
    from gitsched.manifests.choices import Choice


def validate_document(body: Body, ignored: frozenset[str] = frozenset(), strictness: Strictness = "upstream") -> ValidationResult:
    """Validate a document of any kind. Rules run only on documents that the schema accepts, because they rely on it.

    `ignored` are the codes of rules that settings turn off. `strictness` says which issues of the schema are errors.
    """
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    api = apis_by_group.get(group)
    try:
        known = _load_kinds()
        defaults = known.find_defaults(group)
        filled = defaults(body) if defaults is not None else body
        result = known.schemas.validate(filled, None if filled is body else body, strictness)
    except (TypeError, ValueError) as error:
        found = find_non_json_value(body)
        if found is None and isinstance(error, UnicodeEncodeError):
            found = Issue("error", "wrong-type", "a key has an unpaired surrogate, which UTF-8 cannot encode")
        if found is None:
            raise
        return ValidationResult(body, (found,))
    if strictness == "strict" and result.issues:
        result = result._replace(issues=tuple(issue.as_error() for issue in result.issues))
    embedded = api.embedded_objects.get((group, kind)) if api is not None else None
    if embedded is not None:
        inner = list(_validate_bundles(result.body, embedded, ignored, strictness))
        result = result._replace(issues=(*result.issues, *inner)) if inner else result
    rules = known.find_rules(group, kind, body)
    if rules is None or any(issue.severity == "error" for issue in result.issues):
        return result
    broken = [issue for issue in rules(result.body) if issue.code not in ignored]
    if strictness == "strict":
        broken = [issue.as_error() if issue.code == "unknown-field" else issue for issue in broken]
    return ValidationResult(result.body, (*result.issues, *broken)) if broken else result


def _validate_bundles(body: Body, path: tuple[str, ...], ignored: frozenset[str], strictness: Strictness) -> Iterator[Issue]:
    """Yield the errors of Bundles among the objects that a workload consists of: they are built as other Bundles are."""
    objects = get_field(body, *path)
    for index, inner in enumerate(objects if isinstance(objects, list) else ()):
        if isinstance(inner, dict) and (parse_api_group(get_text(inner, "apiVersion")), inner.get("kind")) == BUNDLE_KIND:
            for issue in validate_document(inner, ignored, strictness).issues:
                if issue.severity == "error":
                    yield issue._replace(pointer=(*path, index, *issue.pointer))


def validate_source_document(
    body: Body, ignored: frozenset[str] = frozenset(), strictness: Strictness = "protective"
) -> ValidationResult:
    """Validate a document of the source: as `validate_document` does, and an object of a built-in kind against Kubernetes' schema of it.

    Such an object stays as it is written, with its unknown fields: a delivery tool gets it so.
    """
    result = validate_document(body, ignored, strictness)
    group = parse_api_group(str(body.get("apiVersion") or body.get("api") or ""))
    is_built_in, api = group in load_built_in_kinds().groups, apis_by_group.get(group)
    if api is not None and not is_built_in and group in _load_kinds().checked_groups:
        embedded = api.embedded_objects.get((group, str(body.get("kind") or "")))
        inner = list(_find_embedded_errors(result, embedded, ignored, strictness)) if embedded is not None else []
        return result._replace(issues=(*result.issues, *inner)) if inner else result
    key = get_schema_key(body)
    if not is_built_in:
        found = load_built_in_kinds().check_group(key) if api is None else []
        found = found or find_wrong_types(key, body)
        return result._replace(issues=(*result.issues, *found)) if found else result
    try:
        found = load_built_in_kinds().find_issues(key, body)
    except (TypeError, ValueError):
        value = find_non_json_value(body)
        if value is None:
            raise
        found = [value]
    if not found:
        return result
    known = {issue.pointer for issue in result.issues}
    issues = (issue if strictness != "strict" else issue.as_error() for issue in found if issue.pointer not in known)
    return ValidationResult(result.body, (*result.issues, *issues))


def _find_embedded_errors(
    result: ValidationResult, path: tuple[str, ...], ignored: frozenset[str], strictness: Strictness
) -> Iterator[Issue]:
    """Yield the errors of the objects that a workload consists of: clusters get them as they get other objects."""
    known = {issue.pointer for issue in result.issues}
    objects = get_field(result.body, *path)
    for index, inner in enumerate(objects if isinstance(objects, list) else ()):
        if not isinstance(inner, dict) or (parse_api_group(get_text(inner, "apiVersion")), inner.get("kind")) == BUNDLE_KIND:
            continue
        described = classify_document(inner)
        issues = [*([Issue("error", described.code, described.reason, described.pointer)] if described.code else ())]
        if described.category == "resource":
            issues += [*validate_object_meta(inner), *validate_source_document(inner, ignored, strictness).issues]
        for issue in issues:
            pointer = (*path, index, *issue.pointer)
            if issue.severity == "error" and pointer not in known:
                yield issue._replace(pointer=pointer)


def find_non_json_value(body: Any) -> Issue | None:
    """Return the first value that JSON cannot represent, such as a key that is not a string or a date, which other parsers than ours may
    produce. None if there is none."""
    rest: list[tuple[Any, tuple[str | int, ...]]] = [(body, ())]
    while rest:
        value, pointer = rest.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    return Issue("error", "wrong-type", f"the key {key!r:.60} must be a string; quote it", pointer)
                rest.append((item, (*pointer, key)))
        elif isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            return Issue("error", "wrong-type", "the string has an unpaired surrogate, which UTF-8 cannot encode", pointer)
        elif isinstance(value, list):
            rest += [(item, (*pointer, index)) for index, item in enumerate(value)]
        elif value is not None and not isinstance(value, (str, int, float)):
            return Issue("error", "wrong-type", f"JSON has no {type(value).__name__} values; quote it", pointer)
    return None


def list_document_findings(body: Body, ignored: frozenset[str] = frozenset(), strictness: Strictness = "upstream") -> list[Finding]:
    """Return the findings of validation about a document without a location."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    namespace = get_field(body, "metadata", "namespace")
    resource = (str(body.get("kind")), namespace if isinstance(namespace, str) else "", name) if isinstance(name, str) else None
    return [
        Finding(issue.severity, issue.code, f"{_format_pointer(issue.pointer)}{issue.message}", None, resource)
        for issue in validate_document(body, ignored, strictness).issues
    ]


def list_document_choices(body: Body) -> Iterator[Choice]:
    """Yield the selectors and names by which a valid document of a policy API chooses workloads or clusters."""
    return _load_kinds().schemas.list_choices(body)


def split_unread_configs(path: str, documents: Iterable[RawDocument]) -> tuple[tuple[RawDocument, ...], list[Finding]]:
    """Separate the settings that are not read: all but the first document of the gitsched.yaml at the top of the repository.

    Return the other documents of the file, and a finding for each one that is not read.
    """
    used: list[RawDocument] = []
    findings: list[Finding] = []
    is_read = path == config.FILE
    for document in documents:
        if (document.group, document.kind) == (config.GROUP, OPERATOR_KIND):
            findings.append(_make_unread_operator_finding(path, document))
            continue
        if (document.group, document.kind) != (config.GROUP, config.KIND):
            used.append(document)
            continue
        if is_read:
            used.append(document)
        else:
            findings.append(_make_unread_config_finding(path, document))
        is_read = False
    return tuple(used), findings


def _make_unread_config_finding(path: str, document: RawDocument) -> Finding:
    reason = f"only the {config.FILE} at the top of the repository is" if path != config.FILE else "only the first of the file is"
    location = locate_origin(document.origin) if document.origin else Location(path, 1, 1)
    resource = (config.KIND, "", document.name)
    return Finding("warning", "stray-config", f"this {config.KIND} is not read: {reason}", location, resource)


def _make_unread_operator_finding(path: str, document: RawDocument) -> Finding:
    message = (
        f"this {OPERATOR_KIND} is not read: settings of the operator are a file outside of the source; move it, and pass it with "
        "--operator-settings"
    )
    return Finding("warning", "stray-config", message, locate_origin(document.origin) if document.origin else Location(path, 1, 1))


def _format_pointer(pointer: Iterable[str | int]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)[1:]
    return f"{path}: " if path else ""


def _find_rules(with_schema: Set[tuple[str, str]], group: str, kind: str) -> DocumentValidator | None:
    api = apis_by_group.get(group)
    if api is not None:
        rules = _find_api_rules(api, group, kind)
        is_read = (group, kind) in with_schema or (group, kind) in api.kinds.templates or has_field_table(api.name, group, kind)
        return rules if rules is not None or is_read else _report_ignored
    if (group, kind) == (config.GROUP, config.KIND):
        return config.check_config
    if (group, kind) == FACTS_KIND:
        from gitsched.apis.gitsched.facts_document import validate_facts  # only facts branches have such documents

        return validate_facts
    if (group, kind) == (config.GROUP, OPERATOR_KIND):
        from gitsched.apis.gitsched.operator_config import check_operator_config  # it is a file outside of the source

        return check_operator_config
    if (group, kind) == BUNDLE_KIND:
        from gitsched.apis.gitsched.bundle import validate_bundle  # most sources have no Bundle

        return validate_bundle
    if (group, kind) == CLUSTER_REPORT:
        from gitsched.apis.gitsched.cluster_report import validate_cluster_report  # as above

        return validate_cluster_report
    if (group, kind) == ROLLOUT_KIND:
        from gitsched.apis.gitsched.rollout import validate_rollout  # most sources have no Rollout

        return validate_rollout
    if (group, kind) == TENANT_KIND:
        from gitsched.apis.gitsched.tenant import validate_tenant  # few sources have tenants

        return validate_tenant
    return None


def _report_ignored(body: Body) -> Iterator[Issue]:
    """Report a document of a policy API whose kind nothing reads."""
    group, _, kind = get_schema_key(body)
    message = f"gitsched reads no {kind:.60} of {group}, and delivers no objects of the group: it is ignored; correct its kind or remove it"
    yield Issue("warning", "unknown-kind", message, ("kind",))


def _find_defaults(group: str) -> Callable[[Body], Body] | None:
    api = apis_by_group.get(group)
    defaults = api.apply_defaults if api is not None else None
    return defaults.load() if isinstance(defaults, Registered) else defaults


def _find_api_rules(api: PolicyAPI, group: str, kind: str) -> DocumentValidator | None:
    """Return the rules of an API for documents of its groups, with those about fields that gitsched does not support."""
    rules = api.find_validator(group, kind) if api.find_validator is not None else None
    fields = make_field_validator(api.name, group, kind)
    if rules is None or fields is None:
        return rules or fields
    return lambda body: chain(rules(body), fields(body))


def _find_named_rules(apis: Iterable[PolicyAPI], body: Body, group: str, kind: str) -> DocumentValidator | None:
    """Return the rules of an API for objects of other groups, some of which it validates by name."""
    for api in apis:
        names = api.validated_objects.get((group, kind))
        is_validated = names is not None and (not names or str(get_field(body, "metadata", "name")) in names)
        if is_validated and api.find_validator is not None:
            return api.find_validator(group, kind)
    return None


def _list_config_schemas(apis: Iterable[PolicyAPI]) -> list[Mapping[SchemaKey, Body]]:
    """Return the schema of Config with the sections of APIs that bring a schema; nothing if there are none."""
    sections = {api.settings.name: api.settings.schema for api in apis if api.settings is not None and api.settings.schema}
    if not sections:
        return []
    key = (config.GROUP, config.VERSION, config.KIND)
    schema = shipped_schemas()[key]
    for name, section in sections.items():
        schema = set_at(schema, ("properties", "spec", "properties", name), section)
    return [{key: schema}]


class _KnownKinds:
    """The schemas and the rules of the kinds that gitsched and some policy APIs read. Rules are looked up once for each kind, and what
    fills in defaults once for each group."""

    __slots__ = ("_apis", "_find_rules", "_named", "checked_groups", "find_defaults", "schemas")

    def __init__(self, apis: tuple[PolicyAPI, ...]) -> None:
        known = list_schemas([*(api.schemas for api in apis), *_list_config_schemas(apis)])
        with_schema = {(group, kind) for group, _, kind in known}
        others = {
            pair for api in apis for pair in (*api.validated_objects, *api.active_templates) if pair[0] and pair not in with_schema
        }
        self.schemas = SchemaValidator(known, sorted(others))
        self.checked_groups = frozenset(group for group, _, _ in known)
        self._apis = apis
        reading = {group for api in apis if api.find_validator is not None for group in api.groups}
        self._named = frozenset(pair for api in apis for pair in api.validated_objects if pair[0] not in reading)
        self._find_rules = lru_cache(maxsize=1024)(partial(_find_rules, with_schema))
        self.find_defaults = lru_cache(maxsize=1024)(_find_defaults)

    def find_rules(self, group: str, kind: str, body: Body) -> DocumentValidator | None:
        """Return the rules for a document that a schema cannot express; None if there are none."""
        if (group, kind) in self._named:
            return _find_named_rules(self._apis, body, group, kind)
        return self._find_rules(group, kind)


_kinds: dict[tuple[PolicyAPI, ...], _KnownKinds] = {}


def _load_kinds() -> _KnownKinds:
    apis = tuple(policy_apis.values())
    known = _kinds.get(apis)
    if known is None:
        known = _kinds[apis] = _KnownKinds(apis)
    return known
