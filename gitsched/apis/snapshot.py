"""What a policy engine reads: the documents of a commit, previous records, settings and times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from gitsched.apis.gitsched.config import Config
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.stateful_holds import Holds
    from gitsched.model.capacity_use import PlacedRequests
    from gitsched.model.scheduling import Outcome
    from gitsched.model.variants import TemplateVariants


class Snapshot(NamedTuple):
    """The complete input of one scheduling run.

    `documents` are those of the policy APIs' own groups, by (group, kind), sorted by key; `templates` are all other documents by key, in
    the order of namespace and name. `quarantined` are the keys of documents that are broken or defined more than once. `previous` are the
    records of the previous output. `at` is the time of the source commit and `now` the time that deadlines are compared with.
    `observations` are the values that metrics providers returned. `duplicates` and `duplicate_templates` are the copies of documents
    that are defined more than once, of the policy APIs and all others. `input_order` lists the keys of all valid documents in the order in
    which they were read. `single_cycle` asks for one cycle of the scheduler even if the next one would decide otherwise; without it
    decisions are repeated until they are stable. `variants` are what clusters get in place of some templates; every Bundle has an entry.
    `load_holds` returns which workloads have data and which of them are released; without it nothing is held. With `fixed`, every
    workload and decision keeps exactly the placement of its record, and what has none gets none: nothing is scheduled or evicted. With
    `has_adopted`, some workloads keep the placement with which they were adopted.
    `tenancy` says which tenant owns which document; None without tenants. Engines do not read it: they get the documents that one owner
    may use, and `elsewhere` are the workloads of the source that others decide. `broken` are quarantined documents of which no version
    was valid; what can be read of them may hold workloads that have no decision yet. In one cycle of the scheduler they do not count.
    `part_kinds` are the kinds of objects that kustomizations change and that are not placed; where they are not empty, `quarantined` does
    not have these objects. `unused` are quarantined documents that are in the snapshot of an incremental plan in place of `quarantined`: no
    engine reads them, and the last run did not place them. `tenant` is the name of the Tenant whose workloads are decided, which may not
    allow all clusters. `kept` are the outcomes of workloads that keep their previous placement whatever an engine decides: see
    `PolicyEngine.keep_outcomes`. `placed` is what
    earlier runs placed since the facts about clusters were observed.
    """

    documents: Mapping[tuple[str, str], tuple[Document, ...]]
    templates: Mapping[Key, Document]
    quarantined: frozenset[Key]
    previous: Mapping[Key, Body]
    config: Config
    at: datetime
    now: datetime
    observations: Mapping[Any, Any] = {}
    duplicates: Mapping[Key, tuple[Document, ...]] = {}
    input_order: tuple[Key, ...] = ()
    single_cycle: bool = False
    duplicate_templates: Mapping[Key, tuple[Document, ...]] = {}
    variants: TemplateVariants = {}
    load_holds: Callable[[], Holds] | None = None
    fixed: bool = False
    has_adopted: bool = False
    tenancy: Tenancy | None = None
    elsewhere: Container[Key] = frozenset()
    broken: Mapping[Key, Document] = {}
    part_kinds: frozenset[tuple[str, str]] = frozenset()
    unused: frozenset[Key] = frozenset()
    tenant: str = ""
    kept: Mapping[Key, Outcome] = {}
    placed: Mapping[str, tuple[PlacedRequests, ...]] = {}


EMPTY_SNAPSHOT = Snapshot({}, {}, frozenset(), {}, Config(), EPOCH, EPOCH)


@runtime_checkable
class RecordsByKind(Protocol):
    """Previous records that can list some of them without decoding all others."""

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]: ...

    def outside_groups(self, groups: Collection[str]) -> Iterator[tuple[Key, Body]]: ...


def list_previous_records(previous: Mapping[Key, Body], group: str, kind: str) -> list[tuple[Key, Body]]:
    """Return the previous records of one kind, sorted by key."""
    if isinstance(previous, RecordsByKind):
        return sorted(previous.of_kind(group, kind), key=lambda entry: entry[0])
    return sorted(((key, body) for key, body in previous.items() if key[:2] == (group, kind)), key=lambda entry: entry[0])


def list_records_outside(previous: Mapping[Key, Body], groups: Collection[str]) -> list[tuple[Key, Body]]:
    """Return the previous records whose group is not one of `groups`, sorted by key."""
    if isinstance(previous, RecordsByKind):
        return sorted(previous.outside_groups(groups), key=lambda entry: entry[0])
    return sorted(((key, body) for key, body in previous.items() if key.group not in groups), key=lambda entry: entry[0])


DEFINITION_KIND = ("apiextensions.k8s.io", "CustomResourceDefinition")


def list_definitions(snapshot: Snapshot) -> Mapping[tuple[str, str], Key]:
    """Return the first CustomResourceDefinition of each group and kind that the source defines."""
    found: dict[tuple[str, str], Key] = {}
    for key in [key for key in snapshot.templates if key[:2] == DEFINITION_KIND]:
        kind = read_defined_kind(snapshot.templates[key].body)
        if kind is not None:
            found.setdefault(kind, key)
    return found


def read_defined_kind(definition: Body) -> tuple[str, str] | None:
    """Return the group and kind that a CustomResourceDefinition defines; None if it does not say so."""
    group, kind = get_field(definition, "spec", "group"), get_field(definition, "spec", "names", "kind")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else None
