"""The documents that differ between two source trees: what an incremental plan is made from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.config import GROUP
from gitsched.decide.catalog import DEFINITION_KINDS, KustomizedDocument, RawDocument, is_template, resolve_key
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Document, Key, get_field, is_known_group, list_objects, parse_api_group
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.model.tool_groups import TOOL_GROUPS
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.tenancy import TenantPaths
    from gitsched.apis.policy_api import PolicyAPI
    from gitsched.model.finding import Finding


class ChangedSettings(NamedTuple):
    """The settings of a plan that continues the last one, and the document in gitsched.yaml before and after."""

    config: Config
    before: Document
    after: Document


class ChangedParts(NamedTuple):
    """Objects that kustomizations change, so that they are not placed.

    `changed` are those that came, went or differ, and `present` says of those that are there what changes them. `checked` are those that a
    policy may select although none did before, and `reported` the findings about those that one did select: if there are any, all objects
    are checked. In place of what is `reported`, which also has the findings of the last source tree that belong to no file, there are those
    `found` in the new one.
    """

    changed: frozenset[Key] = frozenset()
    checked: tuple[tuple[Document, KustomizedDocument], ...] = ()
    reported: frozenset[Finding] = frozenset()
    found: tuple[Finding, ...] = ()
    present: Mapping[Key, str] = {}


NO_PARTS = ChangedParts()


class ChangedTenants(NamedTuple):
    """The Tenants that counted in the last plan (`before`), the `owners` whose rules differ, findings about the changes, and the Tenants of
    the planned commit as gitsched.json has them. The owners of paths are the same."""

    before: TenantPaths
    owners: frozenset[str]
    findings: tuple[Finding, ...]
    records: tuple[Mapping[str, Any], ...]


class SourceDiff(NamedTuple):
    """The changes of a source tree.

    `documents` are the templates to decide again, and `findings` those of each changed file. `templates` and `api_documents` are the
    documents before and after their change. `added_paths` and `removed_paths` are files. `settings` are those of gitsched.yaml if its text
    changed. `parts` are objects that are not placed because kustomizations change them. `tenants` are those that differ.
    """

    documents: Mapping[Key, Document]
    findings: Mapping[str, tuple[Finding, ...]]
    templates: Mapping[Key, DocumentPair] = {}
    api_documents: Mapping[Key, DocumentPair] = {}
    added_paths: frozenset[str] = frozenset()
    removed_paths: frozenset[str] = frozenset()
    settings: ChangedSettings | None = None
    parts: ChangedParts = NO_PARTS
    tenants: ChangedTenants | None = None

    @property
    def stored_documents(self) -> Mapping[Key, DocumentPair]:
        """The changed documents that the state of a plan keeps: those of policy APIs, and the settings."""
        if self.settings is None:
            return self.api_documents
        return {**self.api_documents, self.settings.after.key: (self.settings.before, self.settings.after)}

    @property
    def came_or_went(self) -> frozenset[Key]:
        """The templates that were added or removed."""
        return frozenset(key for key, (before, after) in self.templates.items() if before is None or after is None)


class FileDocuments:
    """The documents of some files by identity: templates, and documents of policy APIs."""

    __slots__ = ("api", "templates")

    def __init__(self) -> None:
        self.templates: dict[Key, Document] = {}
        self.api: dict[Key, Document] = {}


def identify_documents(
    documents: Iterable[RawDocument],
    kind_scopes: Mapping[tuple[str, str], bool],
    found: FileDocuments,
    declared: Container[tuple[str, str]] | None = None,
) -> bool:
    """Add documents by identity; return False if an identity is unknown or defined twice, or if a document concerns others.

    Documents that may come and go are of kinds whose scope and effect on builds no other document changes: of Kubernetes, of a policy API,
    or `declared`. It is None if none may.
    """
    for document in documents:
        key, kind = resolve_key(document, kind_scopes), (document.group, document.kind)
        if key is None or document.kind in DEFINITION_KINDS or (declared is not None and may_contain_bundle(document)):
            return False
        if declared is not None and (document.group in TOOL_GROUPS or not (is_known_group(document.group) or kind in declared)):
            return False
        target = found.templates if is_template(*kind, reserved_groups) else found.api
        if key in target or kind == BUNDLE_KIND or (target is found.templates and document.group in reserved_groups):
            return False
        target[key] = Document(key, document.api_version, document.body, document.origin)
    return True


def may_contain_bundle(document: RawDocument) -> bool:
    """Return whether a document is a Bundle, whose directory is built, or contains one among its objects."""
    kind = document.group, document.kind
    paths = [api.embedded_objects[kind] for api in policy_apis.values() if kind in api.embedded_objects]
    return kind == BUNDLE_KIND or any(
        (parse_api_group(str(body.get("apiVersion"))), body.get("kind")) == BUNDLE_KIND
        for path in paths
        for body in list_objects(get_field(document.body, *path))
    )


def concern_everything(changed: Iterable[Key]) -> bool:
    """Return whether one of some changed documents of policy APIs, such as a Tenant, may concern all workloads."""
    return any(key.group == GROUP and key[:2] not in (CLUSTER_REPORT, ROLLOUT_KIND) for key in changed)


def pair_documents(before: Mapping[Key, Document], after: Mapping[Key, Document]) -> dict[Key, DocumentPair]:
    """Return the documents that differ, each before and after."""
    keys = {**before, **after}
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


def creates_engine(key: Key, api: PolicyAPI) -> bool:
    """Return whether a template makes a policy API active."""
    return key[:2] in api.active_templates or (key.group, key.kind, key.name) in api.active_objects
