"""List the changes of gitsched.yaml between two commits, with what each does and when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gitsched.apis.gitsched.config import GROUP, KIND, VERSION
from gitsched.apis.schemas import shipped_schemas
from gitsched.diff.field_differences import format_value
from gitsched.model.changes import ChangedField, SettingChange
from gitsched.model.document import Body, as_object
from gitsched.model.finding import format_count
from gitsched.model.time import parse_duration
from gitsched.model.urls import strip_credentials
from gitsched.named_tuples import NamedTuple

MAX_CHANGES: Final = 200
"""Changes that are listed, sensitive ones first if there are more; one more entry counts the others."""
_MAX_DEPTH = 12
_NEXT_RUN = "It takes effect from the next run after the first one with this commit."
_AT_ONCE = "It takes effect with this commit."
_SIGNATURES = (
    "It decides which keys must sign source commits. A requirement that is added takes effect at once; one that is removed, or another "
    "key, from the next run after the first one with this commit."
)
_GUARD = "A stricter limit takes effect at once, a looser one after a run that withholds nothing."


class _Effect(NamedTuple):
    text: str
    sensitive: bool = True


_EFFECTS: Final[Mapping[str, _Effect]] = {
    "source.branch": _Effect(f"gitsched reads another branch as the source. {_AT_ONCE}"),
    "source.verify": _Effect(_SIGNATURES),
    "source.kustomize.remotes": _Effect(
        "It decides which other repositories are read. They are fetched only if the operator allows it (--allow-remote)."
    ),
    "source.facts": _Effect(
        f"It decides which branches facts, reports and scores are read from, and how facts that are too old count. {_NEXT_RUN}"
    ),
    "output.repository": _Effect("It has an effect only if the operator names the same repository (--output-repository)."),
    "output.branch": _Effect("Decisions stay on the branch where they are; the operator moves them (--output-branch)."),
    "output.path": _Effect("Decisions stay in the directory where they are; the operator moves them (its output.path)."),
    "output.push": _Effect(
        f"false keeps decisions of a local repository from being pushed; true needs the operator (--push). {_AT_ONCE}"
    ),
    "output.signing": _Effect("It has an effect only if the operator names the same key (--sign)."),
    "output.author": _Effect(f"It is the author of output commits. {_NEXT_RUN}"),
    "output.protectedNamespaces": _Effect(
        f"gitsched may add and remove the namespaces that are not listed, also those of delivery tools. {_AT_ONCE}"
    ),
    "observations.statuses": _Effect(
        "It decides who reports the health of clusters, and which token is sent there. The operator must allow host and token "
        f"(--statuses-host, --allow-token). {_NEXT_RUN}"
    ),
    "delivery.clusterProfileNamespace": _Effect(
        f"It is the namespace of the ClusterProfiles that placements/ names. {_AT_ONCE}", sensitive=False
    ),
    "delivery": _Effect(f"It decides how Flux and Argo CD of every cluster fetch and apply Bundles. {_AT_ONCE}"),
    "reserve": _Effect(
        "It decides after which losses a plan fails because replicas have no place. A plan checks the reserves of both of its sides, so "
        "one that is removed does not count from the next change on.",
        sensitive=False,
    ),
    "guard": _Effect(f"It decides which changes the guard withholds. {_GUARD}", sensitive=False),
}
"""What a change of a member, or of one below it, does."""


def list_setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return the members in which two specs of gitsched.yaml differ, by path, at most MAX_CHANGES. Lists are compared as a whole. A missing
    member is equal to its default."""
    found = [
        (_find_effect(path), path, one, other)
        for path, one, other in _compare(before, after, ())
        if _evaluate(path, one) != _evaluate(path, other)
    ]
    are_many = len(found) > MAX_CHANGES
    found.sort(key=lambda change: (are_many and not change[0].sensitive, change[1]))
    changes = [
        SettingChange(_make_change(path, _redact(one), _redact(other)), effect.text, effect.sensitive)
        for effect, path, one, other in found[:MAX_CHANGES]
    ]
    omitted = found[MAX_CHANGES:]
    if omitted:
        sensitive = any(effect.sensitive for effect, *_ in omitted)
        others = ChangedField(format_count(len(omitted), "more member"), "", "")
        changes.append(SettingChange(others, "They are not listed: compare the files.", sensitive))
    return changes


def _compare(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield the path and both values of each member that differs; None stands for a missing one."""
    if before == after:
        return
    objects = [value for value in (before, after) if isinstance(value, dict)]
    if len(objects) + sum(value is None for value in (before, after)) == 2 and objects and len(path) < _MAX_DEPTH:
        for name in dict.fromkeys(str(name) for value in objects for name in value):
            yield from _compare(as_object(before).get(name), as_object(after).get(name), (*path, name))
    else:
        yield path, before, after


def _find_effect(path: tuple[str, ...]) -> _Effect:
    for length in range(len(path), 0, -1):
        known = _EFFECTS.get(".".join(path[:length]))
        if known is not None:
            return known
    description = _find_description(path)
    return _Effect(f"{description} {_AT_ONCE}" if description else _AT_ONCE, sensitive=False)


def _find_description(path: tuple[str, ...]) -> str:
    """Return the description of a member in the schema of Config; "" if it has none."""
    return str(_find_schema(path).get("description") or "")


def _find_schema(path: tuple[str, ...]) -> Body:
    """Return the schema of a member of a Config; {} for an unknown one."""
    schema: Body = shipped_schemas()[GROUP, VERSION, KIND]
    node = as_object(as_object(schema.get("properties")).get("spec"))
    for name in path:
        node = as_object(as_object(node.get("properties")).get(name))
    return node


def _make_change(path: tuple[str, ...], before: Any, after: Any) -> ChangedField:
    """Return the change of a member; None stands for a missing one, which has its default."""
    schema = _find_schema(path)
    default = f"{format_value(schema['default'])} (default)" if "default" in schema else ""
    old, new = (default if value is None else format_value(value) for value in (before, after))
    values = [None if value is None else json.dumps(value, ensure_ascii=False) for value in (before, after)]
    return ChangedField(".".join(path), old, new, (values[0], values[1]))


def _evaluate(path: tuple[str, ...], value: Any) -> Any:
    """Return what a value of a member means: the default for None, and the seconds of a duration."""
    schema = _find_schema(path)
    value = schema.get("default") if value is None else value
    duration = parse_duration(value) if "ms" in schema.get("pattern", "") else None
    return duration.total_seconds() if duration is not None else value


def _redact(value: Any) -> Any:
    if isinstance(value, str) and "@" in value and "://" in value:
        return strip_credentials(value) or "..."
    if isinstance(value, dict):
        return {name: _redact(entry) for name, entry in value.items()}
    return [_redact(entry) for entry in value] if isinstance(value, list) else value
