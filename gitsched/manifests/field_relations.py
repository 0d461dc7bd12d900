"""Check several fields of an object together, by the rules in `gitsched.kinds.field_relations`, which are compiled once for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from gitsched.kinds.field_relations import STANDARD_RESOURCES
from gitsched.kinds.value_limits import FieldRelation
from gitsched.manifests.data_relations import (
    Check,
    Found,
    at_most,
    is_placeholder,
    least_one,
    limit_length,
    limit_size,
    not_all_zero,
    one_not_zero,
    only_with,
    refuse_address,
    schedule,
    secret_keys,
    service_account,
    shorten,
    trim,
)
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue, Pointer
from gitsched.model.labels import Requirement, is_label, is_label_key, is_label_value
from gitsched.model.quantity import parse_quantity
from gitsched.named_tuples import NamedTuple


class RelationTree:
    """The rules for the objects at one path, and for those below it. Rules about a member that an object does not have cost nothing."""

    __slots__ = ("_always", "_always_whole", "_members")

    def __init__(self, relations: Iterable[FieldRelation]) -> None:
        always: dict[bool, list[Check]] = {False: [], True: []}
        about: dict[str, dict[bool, list[Check]]] = {}
        below: dict[str, list[FieldRelation]] = {}
        for relation in relations:
            name, _, rest = relation.path.partition(".")
            if name:
                below.setdefault(name, []).append(relation._replace(path=rest))
                continue
            factory, find_member = _RULES[relation.rule]
            member = find_member(relation.arguments)
            checks = about.setdefault(member, {False: [], True: []}) if member else always
            checks[relation.whole].append(factory(*relation.arguments))
        self._always, self._always_whole = (tuple(always[False]), (*always[False], *always[True]))
        trees = {name.removesuffix("[]"): RelationTree(rows) for name, rows in below.items()}
        self._members = {
            name: _Member(tuple(own[False]), (*own[False], *own[True]), trees.get(name))
            for name in dict.fromkeys((*about, *trees))
            for own in (about.get(name, {False: [], True: []}),)
        }

    def find_issues(self, value: Body, is_whole: bool, found: list[Issue], pointer: Pointer = ()) -> None:
        """Add the issues of an object at a pointer, and of those below it. `is_whole` says that the document is not a patch."""
        for check in self._always_whole if is_whole else self._always:
            for issue in check(value):
                found.append(_make_issue(pointer, issue))
        members = self._members
        for name, inner in value.items():
            if name not in members or inner is None:
                continue
            checks, whole_checks, tree = members[name]
            for check in whole_checks if is_whole else checks:
                for issue in check(value):
                    found.append(_make_issue(pointer, issue))
            if tree is None:
                continue
            if inner.__class__ is dict:
                tree.find_issues(inner, is_whole, found, (*pointer, name))
            elif inner.__class__ is list:
                for index, entry in enumerate(inner):
                    if entry.__class__ is dict and (tree._always_whole or not tree._members.keys().isdisjoint(entry)):
                        tree.find_issues(entry, is_whole, found, (*pointer, name, index))


class _Member(NamedTuple):
    """The rules about a member of an object, those with the ones for whole objects, and the rules below it."""

    checks: tuple[Check, ...]
    whole_checks: tuple[Check, ...]
    tree: RelationTree | None


def _make_issue(pointer: Pointer, issue: tuple[Pointer, str, str]) -> Issue:
    place, code, message = issue
    return Issue("error", code, message, (*pointer, *place))


def _list_entries(value: Body, name: str) -> Iterator[tuple[int, Body]]:
    """Return the objects of a list with their indices; none for a value that is not a list."""
    entries = value.get(name)
    return ((index, entry) for index, entry in enumerate(entries if isinstance(entries, list) else ()) if isinstance(entry, dict))


def _host_ports(member: str) -> Check:
    """With the network of the host, a container has no other ports there than its own."""

    def check(value: Body) -> Found:
        for name in ("containers", "initContainers") if value.get(member) is True else ():
            for index, container in _list_entries(value, name):
                for place, port in _list_entries(container, "ports"):
                    host = port.get("hostPort")
                    if isinstance(host, int) and host and host != port.get("containerPort"):
                        message = f"'hostPort' must be the containerPort with {member}: true, or absent"
                        yield (name, index, "ports", place, "hostPort"), "invalid-field", message

    return check


def _unique(lists: str, *members: str) -> Check:
    """The entries of lists differ in these members; a member that is not there has the value behind its `=`, or makes no difference."""
    names = lists.split()
    keys = [(name, default or None) for name, _, default in (member.partition("=") for member in members)]

    def check(value: Body) -> Iterable[tuple[Pointer, str, str]]:
        count = sum(len(entries) for name in names if isinstance(entries := value.get(name), list))
        return find(value) if count > 1 else ()

    def find(value: Body) -> Found:
        seen: set[tuple[Any, ...]] = set()
        for name in names:
            for index, entry in _list_entries(value, name) if value.get(name) else ():
                identity = tuple(entry.get(key) or default for key, default in keys)
                if None in identity or not all(isinstance(part, str | int) for part in identity):
                    continue
                if identity in seen:
                    shown = ", ".join(f"{key} {shorten(part)}" for (key, _), part in zip(keys, identity, strict=True))
                    yield (
                        (name, index, keys[0][0]),
                        "invalid-field",
                        f"two entries of {' and '.join(names)} have {shown}: give each its own",
                    )
                seen.add(identity)

    return check


def _named_entries(name: str, member: str) -> Check:
    """Each of several entries has the member."""

    def check(value: Body) -> Found:
        entries = list(_list_entries(value, name))
        for index, entry in entries if len(entries) > 1 else ():
            if not entry.get(member):
                yield (
                    (name, index),
                    "missing-field",
                    f"entry {index} lacks '{member}', which is required where {name} has several entries",
                )

    return check


def _at_most_one(*names: str) -> Check:
    known = frozenset(names)

    def check(value: Body) -> Iterable[tuple[Pointer, str, str]]:
        present = [name for name in value if name in known and value[name] not in (None, "", [])]
        return _exclude(present) if len(present) > 1 else ()

    return check


def _exactly_one(*names: str) -> Check:
    known = frozenset(names)

    def check(value: Body) -> Iterable[tuple[Pointer, str, str]]:
        present = [name for name in value if name in known and value[name] not in (None, "", 0, [])]
        if len(present) == 1:
            return ()
        return _exclude(present) if present else [((), "missing-field", f"one of {', '.join(names)} is required")]

    return check


def _exclude(present: list[str]) -> list[tuple[Pointer, str, str]]:
    return [((present[1],), "invalid-field", f"{' and '.join(present[:3])} exclude each other: keep one of them")]


def _forbidden(member: str, other: str, wanted: str) -> Check:
    """A member, or one of its values (`member=value`), is not allowed where another one has a value."""
    name, _, only = member.partition("=")

    def check(value: Body) -> Found:
        if _format(value.get(other)) == wanted and value.get(name) not in (None, "") and (not only or _format(value[name]) == only):
            shown = f"{name}: {only}" if only else name
            yield (name,), "invalid-field", f"{shown} is not allowed with {other}: {wanted}: remove one of them"

    return check


def _needs(member: str, other: str = "", wanted: str = "") -> Check:
    """A member is required: always, where another one is present, or where that has a value."""

    def check(value: Body) -> Found:
        if value.get(member) not in (None, "", []) or (other and not value.get(other)):
            return
        if not wanted or _format(value.get(other)) == wanted:
            where = f" with {other}{f': {wanted}' if wanted else ''}" if other else ""
            yield (), "missing-field", f"'{member}' is required{where}"

    return check


def _needs_unless(member: str, *others: str) -> Check:
    """A member is required, unless one of the others has its value (`name=value`)."""
    excuses = [(name, wanted) for name, _, wanted in (other.partition("=") for other in others)]

    def check(value: Body) -> Found:
        if not value.get(member) and all(name not in value or _format(value[name]) != wanted for name, wanted in excuses):
            yield (), "missing-field", f"'{member}' is required without {' or '.join(f'{name}: {text}' for name, text in excuses)}"

    return check


def _allowed(member: str, *values: str) -> Check:
    """A member has one of these values; where the last one is `with OTHER`, only if that is present, and then the member is required."""
    other = values[-1].removeprefix("with ") if values[-1].startswith("with ") else ""
    accepted = values[:-1] if other else values
    meant = " or ".join(filter(None, accepted))

    def check(value: Body) -> Found:
        written = value.get(member)
        if written in accepted or (value.get(other) is None if other else written is None):
            return
        if _format(written) not in accepted and not is_placeholder(written):
            yield (
                (member,) if member in value else (),
                "value-not-allowed",
                f"'{member}' must be {meant} {f'with {other}' if other else 'here'}, not {shorten(written or '')}",
            )

    return check


def _limited_resources(member: str) -> Check:
    """Requests are at most the limits; resources without a prefix are those of Kubernetes, others have equal requests and limits."""

    def check(value: Body) -> Found:
        resources = value.get(member)
        if not isinstance(resources, dict):
            return
        requests, limits = (part if isinstance(part := resources.get(name), dict) else {} for name in ("requests", "limits"))
        for kind, name in (*(("requests", name) for name in requests), *(("limits", name) for name in limits)):
            if not ("/" in name or name in STANDARD_RESOURCES or name.startswith("hugepages-") or is_placeholder(name)):
                message = f"{shorten(name)} is no resource of a container: write cpu, memory or ephemeral-storage, or its prefix"
                yield (member, kind, name), "value-not-allowed", message
        for name in requests:
            for code, message in _compare_amounts(name, requests, limits):
                yield (member, "requests", name), code, message

    return check


def _compare_amounts(name: str, requests: Body, limits: Body) -> Iterable[tuple[str, str]]:
    """Yield the code and the message of an error if the request of a resource is not one that its limit allows."""
    request, limit = parse_quantity(requests[name]), parse_quantity(limits.get(name))
    is_extended = "/" in name and "kubernetes.io/" not in name
    if request is None:
        return
    if limit is not None and (request.nano > limit.nano or (is_extended and request.nano != limit.nano)):
        wanted = "equal" if is_extended else "be at most"
        yield (
            "out-of-range",
            f"the request of {shorten(name)}, {requests[name]}, must {wanted} its limit, which is {limits[name]}",
        )
    elif is_extended and name not in limits and not is_placeholder(name):
        yield "missing-field", f"a request of {shorten(name)} needs a limit with the same amount"


def _refers(path: str, lists: str, inner: str, member: str, target: str, key: str, more: str = "") -> Check:
    """Entries of inner lists name an entry of another list, all of the object at a path, or an object in the list `more`."""
    names = path.split(".") if path else []

    def check(whole: Body) -> Found:
        value: Any = get_field(whole, *names) if names else whole
        if isinstance(value, dict):
            for place, code, message in find(value, whole):
                yield (*names, *place), code, message

    def find(value: Body, whole: Body) -> Found:
        known: set[Any] | None = None
        for name in lists.split():
            for index, entry in _list_entries(value, name) if value.get(name) else ():
                for position, reference in _list_entries(entry, inner) if entry.get(inner) else ():
                    if known is None:
                        known = {one.get(key) for _, one in _list_entries(value, target)}
                        known |= {get_field(one, "metadata", "name") for _, one in _list_entries(whole, more)}
                    wanted = reference.get(member)
                    if isinstance(wanted, str) and wanted not in known and not is_placeholder(wanted):
                        yield (name, index, inner, position, member), "invalid-field", f"{target} has no entry {shorten(wanted)}"

    return check


def _selects(selector: str, labels: str, required: str = "") -> Check:
    """The selector selects the labels of the object's own template; nothing is said without such labels. An empty one is an error if it
    is `required`."""
    path = labels.split(".")

    def check(value: Body) -> Found:
        own, wanted = get_field(value, *path), value.get(selector)
        if required and isinstance(wanted, dict) and not (wanted.get("matchLabels") or wanted.get("matchExpressions")):
            yield (selector,), "invalid-field", "the selector is empty: give it a label of the template's pods"
        if not (isinstance(own, dict) and own and isinstance(wanted, dict)):
            return
        is_plain = "matchLabels" not in wanted and "matchExpressions" not in wanted
        matched = wanted if is_plain else wanted.get("matchLabels")
        for name, text in matched.items() if isinstance(matched, dict) else ():
            if own.get(name) != text and isinstance(text, str):  # else it is no label: a misspelled matchLabels, or a wrong type
                shown = f"{name}={own[name]}"[:100] if name in own else f"no label {name[:60]!r}"
                message = f"the selector has {f'{name}={text}'[:100]}, and the pods of the template have {shown}: give both the same labels"
                yield (selector, *(() if is_plain else ("matchLabels",)), name), "invalid-field", message
                return
        for index, entry in _list_entries(wanted, "matchExpressions"):
            requirement = Requirement(str(entry.get("key")), str(entry.get("operator")), tuple(entry.get("values") or ()))
            if not requirement.matches(own):
                message = "the selector does not select the labels of the template's pods: give both the same labels"
                yield (selector, "matchExpressions", index), "invalid-field", message
                return

    return check


def _labels(member: str) -> Check:
    def check(value: Body) -> Found:
        labels = value.get(member)
        for name, text in labels.items() if isinstance(labels, dict) else ():
            if is_label(name, text):
                continue
            if not (is_placeholder(name) or is_label_key(name)):
                yield (member, name), "invalid-labels", f"{shorten(name)} cannot be the key of a label"
            elif isinstance(text, str) and text and not (is_placeholder(text) or is_label_value(text)):
                message = f"{shorten(text)} cannot be a label's value: at most 63 letters, digits, '-', '_' and '.'"
                yield (member, name), "invalid-labels", message

    return check


def _format(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first(arguments: tuple[str, ...]) -> str:
    return arguments[0].partition(" ")[0].partition("=")[0]


def _second(arguments: tuple[str, ...]) -> str:
    return arguments[1] if len(arguments) > 1 else ""


_RULES: Final[Mapping[str, tuple[Callable[..., Check], Callable[[tuple[str, ...]], str]]]] = {
    "allowed": (_allowed, lambda names: names[-1].removeprefix("with ") if names[-1].startswith("with ") else names[0]),
    "at-most": (at_most, _first),
    "at-most-one": (_at_most_one, lambda names: names[1] if len(names) == 2 else ""),
    "exactly-one": (_exactly_one, lambda _: ""),
    "forbidden": (_forbidden, _first),
    "host-ports": (_host_ports, _first),
    "labels": (_labels, _first),
    "least-one": (least_one, lambda _: ""),
    "length": (limit_length, _first),
    "limited-resources": (_limited_resources, _first),
    "named-entries": (_named_entries, _first),
    "needs": (_needs, _second),
    "no-address": (refuse_address, _first),
    "not-all-zero": (not_all_zero, _first),
    "one-not-zero": (one_not_zero, lambda _: ""),
    "needs-unless": (_needs_unless, lambda _: ""),
    "only-with": (only_with, lambda names: names[0].partition("[")[0]),
    "refers": (_refers, lambda _: ""),
    "schedule": (schedule, _first),
    "secret-keys": (secret_keys, lambda _: "type"),
    "selects": (_selects, _first),
    "service-account": (service_account, lambda _: "name"),
    "total-size": (limit_size, lambda _: ""),
    "trimmed": (trim, _first),
    "unique": (_unique, _first),
}
"""A function that makes the check of a rule, and one that returns the member without which nothing has to be checked, "" for none."""
