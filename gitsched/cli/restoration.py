"""The output of `gitsched rebalance --to COMMIT`: a patch, what it moves, and why other workloads stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import choose_form, format_count
from gitsched.model.time import format_time
from gitsched.report.lines import abbreviate_oid, escape_unprintable, list_limited
from gitsched.report.serialization import API_VERSION

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.reconcile.restored_placements import FileEdit, RestorationFiles
    from gitsched.simulate.left_data import LeftData
    from gitsched.simulate.reschedule_request import Replicas
    from gitsched.simulate.restored_placements import RestoredPlacement

MAX_SHOWN = 50
"""Workloads of one list that the text names; JSON contains all."""


def describe_restoration(files: RestorationFiles, revision: str) -> str:
    """Return which workloads go back, and why others stay."""
    past, found = files.past, files.restoration
    source = f", planned from {abbreviate_oid(past.source.oid)}: {past.source.subject}" if past.source is not None else ""
    lines = [f"Placements of output commit {abbreviate_oid(past.commit.oid)} of {format_time(past.commit.time)}{source}"]
    if found.restored:
        lines.append(f"{format_count(len(found.restored), 'workload goes', 'workloads go')} back:")
        lines += _indent("\n".join(_describe_restored(row)) for row in found.restored)
        plain = sum(not row.goal.preferred for row in found.restored)
        if plain:
            number = "None of them is" if plain == len(found.restored) else f"{plain} of them {choose_form(plain, 'is', 'are')} not"
            lines.append(f"{number} annotated, because the request alone is enough.")
    elif not (found.kept or found.held or files.returning):
        lines.append("No workload is elsewhere: there is nothing to request.")
    lines += _list_returning(files.returning)
    if found.others:
        lines += ["Move with them:", *_indent(_describe_move(row.key.title, row.before, row.after) for row in found.others)]
    if found.kept:
        lines += ["Stay:", *_indent(_describe_kept(row) for row in found.kept)]
    if found.held:
        lines += ["Held, and not included:", *_indent(_describe_left(left, revision) for left in found.held)]
    if files.skipped:
        lines += ["Not included:", *_indent(f"{key.title}: {reason}" for key, reason in files.skipped)]
    if files.removed:
        lines += ["Not in the source any more:", *_indent(files.removed)]
    return escape_unprintable("\n".join(lines)).replace("\\n", "\n") + "\n"


def _list_returning(keys: Sequence[Key]) -> list[str]:
    """Return which workloads go back without a request; [] for none."""
    head = "Go back with the next runs, without a request (gitsched status says what waits, or is withheld):"
    return [head, *_indent(key.title for key in keys)] if keys else []


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in list_limited(list(lines), MAX_SHOWN)]


def _describe_restored(row: RestoredPlacement) -> Iterator[str]:
    yield _describe_move(row.goal.key.title, row.goal.before, row.after)
    if row.reason:
        yield f"    not as then, {format_replicas(row.goal.wanted)}: {row.reason}"
    if row.left is not None:
        yield f"    it {row.left}"


def _describe_kept(row: RestoredPlacement) -> str:
    return f"{row.goal.key.title}: {format_replicas(row.goal.before)}, then {format_replicas(row.goal.wanted)}: {row.reason}"


def _describe_left(left: LeftData, revision: str) -> str:
    namespace = f"-n {left.key.namespace} " if left.key.namespace else ""
    command = f"gitsched rebalance --to {revision} {namespace}{left.key.kind}/{left.key.name}"
    return f"{left.key.title} {left}. To move it all the same: {command}"


def _describe_move(title: str, before: Replicas, after: Replicas) -> str:
    return f"{title}: {format_replicas(before)} -> {format_replicas(after)}"


def format_replicas(replicas: Replicas) -> str:
    """Return clusters with their replicas, by name."""
    return ", ".join(name if count is None else f"{name} {count}" for name, count in sorted(replicas.items())) or "nowhere"


def format_patch(edits: Iterable[FileEdit]) -> str:
    """Return edits as a patch that `git apply` reads."""
    return "".join(map(_format_edit, edits))


def _format_edit(edit: FileEdit) -> str:
    before, after = (text.split("\n") for text in (edit.before, edit.after))
    lines = list(unified_diff(_close(before), _close(after), f"a/{edit.path}", f"b/{edit.path}", lineterm=""))
    head = [f"diff --git a/{edit.path} b/{edit.path}"]
    if not edit.before:
        head.append("new file mode 100644")
        lines[0] = "--- /dev/null"
    return "".join(f"{line}\n" for line in (*head, *lines))


def _close(lines: list[str]) -> list[str]:
    """Return the lines of a text that was split at line feeds; the last one says if it has none."""
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
    return lines[:-1]


def serialize_restoration(files: RestorationFiles) -> dict[str, Any]:
    """Return what brings workloads back, as data."""
    past, found = files.past, files.restoration
    return {
        "apiVersion": API_VERSION,
        "kind": "Restoration",
        "commit": past.commit.oid,
        "source": past.source.oid if past.source is not None else None,
        "requests": [document.body for document in found.requests],
        "files": [edit.path for edit in (*files.requests, *files.edits)],
        "workloads": [_serialize(row) for row in found.restored],
        "others": [{"workload": r.key.title, "before": dict(r.before), "after": dict(r.after)} for r in found.others],
        "stay": [_serialize(row) for row in found.kept],
        "held": [{"workload": left.key.title, **serialize_left(left)} for left in found.held],
        "returning": [key.title for key in files.returning],
        "notIncluded": [{"workload": key.title, "reason": reason} for key, reason in files.skipped],
        "removed": list(files.removed),
    }


def _serialize(row: RestoredPlacement) -> dict[str, Any]:
    goal = row.goal
    replicas = {"before": dict(goal.before), "after": dict(row.after), "then": dict(goal.wanted)}
    left = {"leaves": serialize_left(row.left)} if row.left is not None else {}
    return {"workload": goal.key.title, **replicas, "preferred": list(goal.preferred), "reason": row.reason, **left}


def serialize_left(left: LeftData) -> dict[str, Any]:
    """Return the data that a workload leaves behind, as data."""
    return {"clusters": list(left.clusters), "data": list(left.data), "adopted": left.adopted}
