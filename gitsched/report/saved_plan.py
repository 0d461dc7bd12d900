"""A plan in a file (`gitsched plan --out`): written as JSON, and read again to be shown or compared with a run.

The file is input of a person, who may have it from anywhere. Nothing that it says is written to a branch: a run plans the source again and
compares. Its digest is computed again from its moves and manifests, so a file whose moves were edited is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from gitsched.model.changes import (
    Cause,
    ChangedField,
    ExceededLimit,
    GuardEffect,
    GuardScope,
    ImageChange,
    ManifestChange,
    Move,
    RecordChange,
    RetainedCopy,
    RetainedWorkload,
    SettingChange,
    UnplacedObject,
    WithheldChanges,
)
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import SEVERITIES, Finding, Location
from gitsched.model.scheduling import UNKNOWN, AtLeast, Outcome, RecordTarget
from gitsched.model.time import EPOCH, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.report.review import WORKLOAD_STATES, ComparisonBase, DeliveryChanges, OutputComparison, Review, compute_digest
from gitsched.report.serialization import API_VERSION, serialize_review

T = TypeVar("T")
KIND = "SavedPlan"
FORMAT = 1
"""The version of the file; a reader refuses others."""
MAX_SIZE = 1 << 26
"""The maximum number of characters of a file."""
_UNREAD = {
    "held": "held workloads",
    "rollouts": "rollouts",
    "resilience": "losses",
}
"""Members of a plan that only its JSON shows again."""


class SavedPlan(NamedTuple):
    """A plan that was read from a file. `plan` is its JSON, a Plan of docs/development/json.md."""

    review: Review
    plan: Mapping[str, Any]


def serialize_saved_plan(review: Review, delivered: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a plan with what its digest covers: `delivered` has the content of each changed manifest, None if it is removed."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "format": FORMAT,
        "delivered": dict(sorted(delivered.items())),
        "manifestsOmitted": review.comparison.delivery.omitted,
        "plan": serialize_review(review),
    }


def parse_saved_plan(text: str) -> SavedPlan:
    """Read a file. Raise Permanent for anything else than a plan that gitsched has saved, and for one whose changes were edited."""
    if len(text) > MAX_SIZE:
        raise Permanent(f"a saved plan has at most {MAX_SIZE:,} characters, this file has {len(text):,}")
    try:
        data = _check(json.loads(text), dict)
    except (ValueError, TypeError, RecursionError) as error:
        raise Permanent("not a saved plan: not a JSON object; save one with `gitsched plan --out FILE`") from error
    if data.get("kind") != KIND:
        raise Permanent("not a saved plan; save one with `gitsched plan --out FILE`")
    if data.get("format") != FORMAT:
        raise Permanent(f"a saved plan of format {data.get('format')!r}, this version reads {FORMAT}; make the plan again")
    try:
        plan = _check(data["plan"], dict)
        review = _read_review(plan, _check(data["manifestsOmitted"], int))
        delivered = {name: None if blob is None else _check(blob, str) for name, blob in _check(data["delivered"], dict).items()}
        digest = compute_digest(review.moves, delivered, review.record_changes)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Permanent(f"not a complete saved plan: {type(error).__name__} at {error}; make the plan again") from error
    if digest != (known := review.comparison.digest):
        raise Permanent(
            f"the changes in the saved plan have the digest {digest}, not {known!r}: the file was edited; make the plan again"
        )
    return SavedPlan(review, plan)


def _read_review(plan: Mapping[str, Any], omitted: int) -> Review:
    output, base, summary = (_check(plan[name], dict) for name in ("output", "base", "summary"))
    workloads, withheld = (_check(plan[name], dict) for name in ("workloads", "withheld"))
    findings = _read_list(plan["findings"], _read_finding)
    known = [found for found, entry in zip(findings, plan["findings"], strict=True) if entry["new"] is False]
    manifests = _read_list(plan["manifests"], _read_manifest)
    unread = [noun for name, noun in _UNREAD.items() if plan.get(name)]
    notes = [f"The saved plan also has {', '.join(unread)}; -o json shows them."] if unread else []
    changed = base["workloads"]
    return Review(
        source=_check(plan["source"], str),
        branch=_check(output["branch"], str),
        output_repository=_check(output["place"], str),
        before=None if output["before"] is None else _check(output["before"], str),
        changed=_check(plan["changed"], bool),
        refused=_check(plan["refused"], str),
        outcomes=_read_list(plan["placements"], _read_outcome),
        moves=_read_list(plan["moves"], _read_move),
        findings=findings,
        unclaimed=_check(workloads["unclaimed"], int),
        next_wakeup=parse_time(plan["nextWakeup"]),
        time=parse_time(plan["time"]) or EPOCH,
        states={state: _check(workloads[state], int) for state in WORKLOAD_STATES},
        base=ComparisonBase(
            commit=_check(base["commit"], str),
            merged=_check(base["merged"], bool),
            states=None if changed is None else {state: _check(changed[state], int) for state in WORKLOAD_STATES},
            findings=known if any(entry["new"] is not None for entry in plan["findings"]) else None,
            unclaimed=None if base["unclaimed"] is None else _check(base["unclaimed"], int),
        ),
        comparison=OutputComparison(
            digest=_check(plan["digest"], str),
            added_clusters=_read_texts(summary["joined"]),
            removed_clusters=_read_texts(summary["gone"]),
            empty_clusters=_read_texts(summary.get("empty", [])),
            delivery=DeliveryChanges(manifests, omitted, _check(summary["files"], int), _read_list(plan["images"], _read_image)),
            notes=[*_read_texts(plan["notes"]), *notes],
            edits=_read_texts(plan["output"].get("edits", [])),
            unplaced=_read_list(plan.get("unplaced", []), _read_unplaced),
            stopped=_read_list(plan.get("stoppedObjects", []), _read_move),
        ),
        retained=_read_list(plan["stays"], _read_retained),
        record_changes=_read_list(plan["recordChanges"], _read_record_change),
        retained_copies=_read_list(plan["retainedCopies"], _read_copy),
        withheld=WithheldChanges(
            tuple(_read_list(withheld["moves"], _read_move)),
            tuple(_read_list(withheld["limits"], _read_limit)),
            _check(withheld["digest"], str),
            _check(withheld["freeze"], str),
            of_base=tuple(_read_list(withheld["ofBase"], _read_move)),
            lift=_check(withheld.get("lift", ""), str),
            unavailable={str(name): str(why) for name, why in _check(withheld.get("unavailable", {}), dict).items()},
        ),
        setting_changes=_read_list(plan["settings"], _read_setting),
    )


def _check(value: Any, kind: type[T]) -> T:
    """Return a value of the kind; TypeError for any other. A truth value is no number."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{kind.__name__} expected")
    return value


def _read_list(value: Any, read: Callable[[dict[str, Any]], T]) -> list[T]:
    return [read(_check(entry, dict)) for entry in _check(value, list)]


def _read_texts(value: Any) -> list[str]:
    return [_check(entry, str) for entry in _check(value, list)]


def _read_key(value: Any) -> Key:
    return Key(*(_check(value[name], str) for name in ("group", "kind", "namespace", "name")))


def _read_clusters(value: Any) -> dict[str, int | None]:
    return dict(_read_list(value, lambda entry: (_check(entry["cluster"], str), _read_replicas(entry))))


def _read_replicas(entry: dict[str, Any]) -> int | None:
    number = _read_number(entry["replicas"])
    if entry.get("unknown") is True:
        return UNKNOWN
    return AtLeast(number) if number is not None and entry.get("atLeast") is True else number


def _read_number(value: Any) -> int | None:
    return None if value is None else _check(value, int)


def _read_move(entry: dict[str, Any]) -> Move:
    return Move(
        _read_key(entry["workload"]),
        _read_clusters(entry["before"]),
        _read_clusters(entry["after"]),
        _check(entry["reason"], str),
        _read_causes(entry["causes"]),
        intended=_check(entry["intended"], bool),
        preserved=_check(entry["preserved"], bool),
        copies=_read_clusters(entry.get("copies", [])),
    )


def _read_causes(value: Any) -> tuple[Cause, ...]:
    return tuple(
        _read_list(
            value,
            lambda entry: Cause(
                _check(entry["text"], str),
                _read_location(entry["location"]),
                removed=_check(entry["gone"], bool),
                proved=_check(entry["proved"], bool),
                together=_read_number(entry["together"]) or 0,
                change=None if entry["change"] is None else _read_changed_field(_check(entry["change"], dict)),
            ),
        )
    )


def _read_location(value: Any) -> Location | None:
    if value is None:
        return None
    return Location(
        _check(value["path"], str),
        _check(value["line"], int),
        _check(value["column"], int),
        _check(value.get("changedBy", ""), str),
    )


def _read_finding(entry: dict[str, Any]) -> Finding:
    severity = SEVERITIES[SEVERITIES.index(entry["severity"])]
    resource = entry["resource"]
    return Finding(
        severity,
        _check(entry["code"], str),
        _check(entry["message"], str),
        _read_location(entry["location"]),
        None
        if resource is None
        else cast(tuple[str, str, str], tuple(_check(resource[n], str) for n in ("kind", "namespace", "name"))),
    )


def _read_outcome(entry: dict[str, Any]) -> Outcome:
    state, policy, group, reason = (_check(entry[name], str) for name in ("state", "policy", "group", "reason"))
    return Outcome(_read_key(entry["workload"]), "", state, policy, group, (), _read_number(entry["replicas"]), (), reason, EPOCH)


def _read_unplaced(entry: dict[str, Any]) -> UnplacedObject:
    return UnplacedObject(_read_key(entry["object"]), _check(entry["selected"], bool), _read_causes([entry["cause"]])[0])


def _read_record_change(entry: dict[str, Any]) -> RecordChange:
    before, after = (_read_targets(entry[name]) for name in ("before", "after"))
    causes, reason = _read_causes(entry["causes"]), _check(entry["reason"], str)
    subject, intended = _read_key(entry["subject"]), _check(entry.get("intended", False), bool)
    return RecordChange(subject, _check(entry["target"], str), before, after, "", causes, reason, intended)


def _read_targets(value: Any) -> tuple[RecordTarget, ...]:
    return tuple(
        _read_list(
            value,
            lambda entry: RecordTarget(_check(entry["name"], str), _read_number(entry["amount"]), _check(entry["group"], str)),
        )
    )


def _read_retained(entry: dict[str, Any]) -> RetainedWorkload:
    current, rescheduled = (_read_clusters(entry[name]) for name in ("clusters", "anew"))
    causes = _read_causes(entry.get("causes", []))
    return RetainedWorkload(_read_key(entry["workload"]), current, rescheduled, _check(entry["remedy"], str), causes)


def _read_copy(entry: dict[str, Any]) -> RetainedCopy:
    start, until = parse_time(entry["start"]), parse_time(entry["until"])
    key, cluster = _read_key(entry["workload"]), _check(entry["cluster"], str)
    preserved, release = _check(entry["preserved"], bool), _check(entry.get("release", ""), str)
    return RetainedCopy(key, cluster, _read_replicas(entry), (), start, None, until, preserved=preserved, release=release)


def _read_manifest(entry: dict[str, Any]) -> ManifestChange:
    before, after = (None if entry[name] is None else _check(entry[name], str) for name in ("before", "after"))
    path, diff, copied, note = (_check(entry[name], str) for name in ("path", "diff", "copied", "note"))
    return ManifestChange(path, tuple(_read_texts(entry["clusters"])), before, after, diff, copied, note)


def _read_image(entry: dict[str, Any]) -> ImageChange:
    before, after = (_check(entry[name], str) for name in ("before", "after"))
    paths, clusters = (tuple(_read_texts(entry[name])) for name in ("manifests", "clusters"))
    return ImageChange(before, after, paths, clusters, _read_location(entry.get("location")))


def _read_setting(entry: dict[str, Any]) -> SettingChange:
    return SettingChange(_read_changed_field(entry), _check(entry["effect"], str), _check(entry["sensitive"], bool))


def _read_changed_field(entry: dict[str, Any]) -> ChangedField:
    before, after = _read_texts(entry["shown"])
    values = [None if entry[name] is None else json.dumps(entry[name], ensure_ascii=False) for name in ("before", "after")]
    return ChangedField(_check(entry["path"], str), before, after, (values[0], values[1]))


def _read_limit(entry: dict[str, Any]) -> ExceededLimit:
    percent, cause = entry["percent"], _check(entry.get("cause", ""), str)
    return ExceededLimit(
        cast(GuardScope, _check(entry["scope"], str)),
        _check(entry["name"], str),
        cast(GuardEffect, _check(entry["effect"], str)),
        _check(entry["amount"], int),
        _check(entry["size"], int),
        float(percent),
        tuple(_read_texts(entry["owners"])),
        Cause(cause) if cause else None,
        _check(entry.get("staying", 0), int),
    )
