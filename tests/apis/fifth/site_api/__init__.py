"""A policy API in one file: a workload with the annotation `fleet.example.io/sites: "2"` runs on the first two Sites by name, and a
SiteQuota divides an amount among the Sites that are online, which only a record shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.gitsched.config_section import SettingsSection
from gitsched.apis.policy_api import CommandSupport, PolicyAPI, PolicyEngine, RecordDescription, StarterFiles
from gitsched.apis.replicas import count_copy_replicas
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.topology import ClusterLocation, Topology, copy_as
from gitsched.model.document import ApiKinds, Body, Document, Key, get_field
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome, RecordedDecision, RecordTarget, TargetCluster

GROUP, KIND, VERSION = "fleet.example.io", "Site", "v1"
QUOTA = "SiteQuota"
ANNOTATION = f"{GROUP}/sites"
EXAMPLE = "apiVersion: fleet.example.io/v1\nkind: Site\nmetadata: {name: example}\nspec: {region: eu}\n"
SCHEMA = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {"region": {"type": "string"}, "offline": {"type": "boolean"}}},
    },
}


QUOTA_SCHEMA = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 0}}},
    },
}


class SiteSettings(NamedTuple):
    limit: int = 100


SETTINGS = SettingsSection(
    "sites",
    SiteSettings(),
    lambda section: SiteSettings(section.get_integer("limit", SiteSettings().limit, 0) or 0),
    {"type": "object", "properties": {"limit": {"type": "integer"}}},
)


class SiteEngine(PolicyEngine):
    name = "sites"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.sites = {document.key.name: document for document in snapshot.documents.get((GROUP, KIND), ())}

    def clusters(self) -> Mapping[str, ClusterInfo]:
        return {name: ClusterInfo(name, {}) for name in self.sites}

    def records(self) -> Iterator[tuple[Key, Body]]:
        """Yield the shares of each SiteQuota: the same whole number for each Site that is online, and the rest for the first ones."""
        online = [result.name for result in self._evaluate_sites() if result.eligible]
        for quota in self.snapshot.documents.get((GROUP, QUOTA), ()):
            share, rest = divmod(quota.body["spec"]["amount"], len(online) or 1)
            shares = {name: share + (position < rest) for position, name in enumerate(online)}
            metadata = {"name": quota.key.name, "namespace": quota.key.namespace}
            yield quota.key, {"apiVersion": f"{GROUP}/{VERSION}", "kind": QUOTA, "metadata": metadata, "status": {"shares": shares}}

    def decide(self, template: Document, /) -> Outcome | None:
        wanted = get_field(template.body, "metadata", "annotations", ANNOTATION)
        if wanted is None:
            return None
        chosen = [site.name for site in self.evaluate_candidates(template) if site.eligible]
        chosen = chosen[: min(int(wanted), self.snapshot.config.settings_of(SETTINGS).limit)]
        record = Key(GROUP, "SitePlacement", template.key.namespace, template.key.name)
        body: Body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": record.kind,
            "metadata": {"name": record.name, "namespace": record.namespace},
            "status": {"sites": chosen},
        }
        previous = get_field(self.snapshot.previous.get(record, {}), "status", "sites") or []
        return Outcome(
            key=template.key,
            api=self.name,
            state="placed" if chosen else "pending",
            policy=ANNOTATION,
            group="",
            targets=tuple(map(TargetCluster, chosen)),
            replicas=count_copy_replicas([template.body], self.snapshot.config),
            records=((record, body),),
            reason=f"the first {wanted} sites",
            time=self.snapshot.at,
            previous_targets=tuple(map(TargetCluster, previous)),
        )

    def evaluate_candidates(self, _template: Document, /) -> list[CandidateResult]:
        return self._evaluate_sites()

    def evaluate_own(self, kind: str, _name: str, _namespace: str, /) -> list[CandidateResult] | None:
        return self._evaluate_sites() if kind == QUOTA else None

    def _evaluate_sites(self) -> list[CandidateResult]:
        offline = {name: get_field(site.body, "spec", "offline") is True for name, site in self.sites.items()}
        return [
            CandidateResult(name, not offline[name], "the site is offline" if offline[name] else "", {}, None) for name in offline
        ]


def _describe_record(key: Key, record: Body) -> RecordedDecision:
    shares = get_field(record, "status", "shares") or {}
    return RecordedDecision(
        key, "site", tuple(RecordTarget(name, share, key=Key(GROUP, KIND, "", name)) for name, share in shares.items())
    )


def _read_location(document: Document) -> ClusterLocation:
    return ClusterLocation(document.key.name, str(get_field(document.body, "spec", "region") or ""), "", ())


def _mark_unreachable(body: Body, _time: datetime) -> Body:
    return {**body, "spec": {**(body.get("spec") or {}), "offline": True}}


API = PolicyAPI(
    name="sites",
    groups=frozenset({GROUP}),
    create_engine=SiteEngine,
    kinds=ApiKinds(cluster_scoped=frozenset({(GROUP, KIND)})),
    settings=SETTINGS,
    schemas={(GROUP, VERSION, KIND): SCHEMA, (GROUP, VERSION, QUOTA): QUOTA_SCHEMA},
    recorded_decisions=RecordDescription(frozenset({(GROUP, QUOTA)}), _describe_record),
    commands=CommandSupport(
        load_starter=lambda: StarterFiles(
            settings="  sites:\n    limit: 3\n",
            clusters="",
            policies="",
            workloads={"sites/example.yaml": EXAMPLE},
            policy_kinds=frozenset(),
            docs_page="docs/sites.md",
        ),
    ),
    topology=Topology(GROUP, KIND, _read_location, _mark_unreachable, _mark_unreachable, copy_as),
)
