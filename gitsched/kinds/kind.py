"""Types of the rows in the table of kinds, and the paths that they use.

A path is written as `spec.valuesFrom[].name`: members are separated by dots, `[]` takes each entry of a list, `*` each value of an
object, `*Ref` the values of members whose name ends with Ref, and `**` a value with all values in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body

NAMESPACED, CLUSTER = "Namespaced", "Cluster"

ObjectKind = tuple[str, str]
"""apiVersion and kind of an object that a field refers to."""

CONFIG_MAP: ObjectKind = ("v1", "ConfigMap")
SECRET: ObjectKind = ("v1", "Secret")
SERVICE: ObjectKind = ("v1", "Service")
SERVICE_ACCOUNT: ObjectKind = ("v1", "ServiceAccount")
VOLUME_CLAIM: ObjectKind = ("v1", "PersistentVolumeClaim")


class Reference(NamedTuple):
    """A field that names another object.

    The value at `path` is the name itself, also as `namespace/name`, or an object with the members `name`, and optionally `kind` and
    `namespace`. `kinds` are the kinds that it can name; the first one counts where the field does not say, unless `kind_required`.
    `namespace` is that of the objects where the field has none; "" is the namespace of the object with the reference. Names in `ignored`
    have another meaning.
    """

    path: str
    kinds: tuple[ObjectKind, ...]
    namespace: str = ""
    kind_required: bool = False
    ignored: tuple[str, ...] = ()


class Component(NamedTuple):
    """A group of equal pods of an object: `path` leads to the objects that describe it, the other paths are relative to these.

    The number of pods is at `replicas`, or `default` where that is missing. `name` is that of the group; a `name_field` of the object takes
    its place, and {} in it is the number of the object, from `first`, or the member that has it where `path` ends with `*`. Without a pod
    template there is no group if `template_required`. `absent` are the numbers for members of some names, in
    lower case, where the number is missing. `quotient` are the paths of two numbers whose quotient,
    rounded up, replaces a missing number. `resources` is an object with the cpu and memory of one pod, where no pod template has them.
    """

    path: str = ""
    replicas: str = ""
    default: int = 1
    pod_template: str = ""
    resources: str = ""
    quotient: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    name: str = ""
    name_field: str = ""
    first: int = 0
    template_required: bool = False
    absent: tuple[tuple[str, int], ...] = ()


class Replicas(NamedTuple):
    """Where an object has its replicas.

    `path` is the number that a division changes; "" if there is none. `fixed` are replicas that no field has. With `components`, the
    replicas are the sum of theirs, and one replica needs the largest cpu and memory of any of them; a division changes those of the
    component with the index `revised`. `pod_template` is the pod template, `pod_spec` a pod spec without a template around it, of which
    only the fields in `pod_fields` count if there are any.
    """

    path: str = ""
    pod_template: str = ""
    pod_spec: str = ""
    pod_fields: tuple[str, ...] = ()
    components: tuple[Component, ...] = ()
    revised: int | None = None
    fixed: int | None = None


class Test(NamedTuple):
    """A condition on an observed object.

    `condition` is the type of an entry of status.conditions that must be True and, with `reasons`, have one of these; `negated` requires
    that there is no such entry. Otherwise the value at `path` must be one of `values` (`operator` "in") or none of them ("not in"), contain
    one of them as a part of its text ("contains"), or be equal to ("==") or at least (">=") the value at `other`, which may be missing if
    it is `optional`. The value of a missing field is None.
    """

    path: str = ""
    operator: str = "in"
    values: tuple[Any, ...] = ()
    other: str = ""
    optional: bool = False
    condition: str = ""
    reasons: tuple[str, ...] = ()
    negated: bool = False


Health = tuple[tuple[Test, ...], ...]
"""Alternatives: an object is healthy if all tests of one of them pass."""


class Kind(NamedTuple):
    """What is known of a kind.

    `scope` is Namespaced or Cluster. `source` is the upstream file with the CustomResourceDefinition, as repository and path.
    `interpreter` is the directory of Karmada's interpreter of the kind, below
    pkg/resourceinterpreter/default/thirdparty/resourcecustomizations. `pod_templates` are the pod templates whose references count,
    `pod_specs` pod specs without a template around them. `secrets` are the paths of the name of the Secret that the object's controller
    writes into its namespace; the first one with a value counts. `sealed` says that only the cluster that the content was encrypted for
    can read it. `components` are the groups of pods of a kind that is placed as a whole set. `destination` is the object that names the
    cluster to which the controller delivers; "" if it is always its own.
    """

    scope: str
    source: str
    references: tuple[Reference, ...] = ()
    pod_templates: tuple[str, ...] = ()
    pod_specs: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    replicas: Replicas | None = None
    components: tuple[Component, ...] = ()
    health: Health = ()
    sealed: bool = False
    interpreter: str = ""
    destination: str = ""


KindTable = Mapping[tuple[str, str], Kind]


def secrets(*paths: str) -> tuple[Reference, ...]:
    """Return references to Secrets."""
    return tuple(Reference(path, (SECRET,)) for path in paths)


def config_maps(*paths: str) -> tuple[Reference, ...]:
    """Return references to ConfigMaps."""
    return tuple(Reference(path, (CONFIG_MAP,)) for path in paths)


def service_accounts(*paths: str) -> tuple[Reference, ...]:
    """Return references to ServiceAccounts."""
    return tuple(Reference(path, (SERVICE_ACCOUNT,)) for path in paths)


def condition(name: str, *reasons: str) -> Health:
    """Return the rule that a condition is True, for one of the reasons if there are any."""
    return ((Test(condition=name, reasons=reasons),),)


def find_values(body: Body, path: str) -> Iterator[Any]:
    """Yield the values at a path, in the order of lists and of object members; none where a part is missing."""
    values: list[Any] = [body]
    for part in path.split(".") if path else ():
        if part == "**":
            values = [descendant for value in values for descendant in _walk(value)]
            continue
        name = part.removesuffix("[]")
        found = [entry for value in values if isinstance(value, dict) for entry in _get_members(value, name)]
        values = [entry for value in found if isinstance(value, list) for entry in value] if part.endswith("[]") else found
    yield from values


def _get_members(value: Body, name: str) -> Iterator[Any]:
    if not name.startswith("*"):
        if name in value:
            yield value[name]
        return
    suffix = name[1:]
    yield from (entry for member, entry in value.items() if isinstance(member, str) and member.endswith(suffix))


def _walk(value: Any) -> Iterator[Any]:
    """Yield a value and all values in it."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(list(current.values()) if isinstance(current, dict) else current if isinstance(current, list) else [])
