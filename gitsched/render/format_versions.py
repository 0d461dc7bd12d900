"""Format versions of what an output branch records, and how each form becomes the next one.

`formatVersion` in gitsched.json names the form of this file and of the records under status/. To change a form, append the step to STEPS:
branches of earlier versions are then read in the new form, and the first run rewrites them in a commit of its own. CONTRIBUTING.md has the
whole procedure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gitsched.model.document import Body, as_object
from gitsched.model.errors import DamagedOutput, Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import RUN_METADATA

FORMAT_MEMBER: Final = "formatVersion"
Members = Mapping[str, Any]


class FormatStep(NamedTuple):
    """How the form of one version becomes that of the next: `metadata` returns the members of gitsched.json, and `record` a record of one
    of `kinds` (group and kind), without the annotation that only its file has. Neither changes its argument, nor raises an error, whatever
    people have made of the files. Both return what has the next form already as it is."""

    metadata: Callable[[Members], Members] = lambda members: members
    record: Callable[[Body], Body] = lambda body: body
    kinds: tuple[tuple[str, str], ...] = ()


DELIVERED_ANNOTATION: Final = "gitsched.io/delivered-replicas"
"""The annotation of a record: a JSON object with the replicas of clusters that get others than the record says. A text such as "2+" is the
minimum of an autoscaler, "?" is a number that no manifest says, "" stands for no replicas, and null for a cluster that has nothing yet."""
UNRECORDED: Final = "unrecorded"
"""The value of DELIVERED_ANNOTATION in records that do not say what is delivered: those of version 1, and adopted ones without numbers."""


def mark_unrecorded(body: Body) -> Body:
    """Return a record with the remark that it does not say what is delivered, unless it does."""
    metadata = as_object(body.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    if DELIVERED_ANNOTATION in annotations:
        return body
    return {**body, "metadata": {**metadata, "annotations": {**annotations, DELIVERED_ANNOTATION: UNRECORDED}}}


STEPS: tuple[FormatStep, ...] = (
    FormatStep(
        record=mark_unrecorded,
        kinds=(
            ("work.karmada.io", "ResourceBinding"),
            ("work.karmada.io", "ClusterResourceBinding"),
            ("work.open-cluster-management.io", "ManifestWorkReplicaSet"),
            ("kubernetes", "Application"),
        ),
    ),
)
"""The steps from each version to the next, beginning with version 1."""
FORMAT_VERSION: Final = 1 + len(STEPS)
"""The version that this gitsched writes."""


def check_version(members: Members, reader: str = "") -> int:
    """Return the format version of the members of gitsched.json. Raise Permanent for a newer one than `reader` knows, the version of this
    gitsched, and for what is no version."""
    version = members.get(FORMAT_MEMBER)
    if type(version) is not int or version < 1:
        found = f"{FORMAT_MEMBER} {json.dumps(version)[:100]}" if FORMAT_MEMBER in members else f"no {FORMAT_MEMBER}"
        raise DamagedOutput(f"{RUN_METADATA} of the output branch has {found}: revert the commit that changed the file")
    if version > FORMAT_VERSION:
        writer = str(members.get("version") or "")
        is_named = writer.isprintable() and writer not in ("", reader)
        newer = f"gitsched {writer[:100]}" if is_named else "a newer gitsched"
        raise Permanent(
            f"{RUN_METADATA} of the output branch has format version {version}, written by {newer}; this gitsched{reader and f' {reader}'} "
            f"reads versions up to {FORMAT_VERSION}: install {newer}{' or later' if is_named else ''}"
        )
    return version


def describe_upgrade(version: int, writer: str, reader: str) -> str:
    """Return the version `reader` with that of an output branch, which another version, `writer`, wrote, in a few words."""
    before = f"format version {version} → {FORMAT_VERSION}" if version != FORMAT_VERSION else f"before: {writer[:100]}"
    return f"gitsched {reader} ({before})"


def upgrade_metadata(members: Members, version: int) -> Members:
    """Return the members of gitsched.json of an earlier version in the present form."""
    for step in STEPS[version - 1 :]:
        members = step.metadata(members)
    return {**members, FORMAT_MEMBER: FORMAT_VERSION}


def list_upgraded_kinds(version: int) -> list[tuple[str, str]]:
    """Return the group and kind of the records that have another form than in an earlier version."""
    return list(dict.fromkeys(kind for step in STEPS[version - 1 :] for kind in step.kinds))


def upgrade_record(group: str, kind: str, body: Body, version: int) -> Body:
    """Return a record of an earlier version in the present form."""
    for step in STEPS[version - 1 :]:
        if (group, kind) in step.kinds:
            body = step.record(body)
    return body
