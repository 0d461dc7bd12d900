"""What is worth a word about policies that are valid: what is easily forgotten, and names that stand for nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.preemption import find_idle_preemption
from gitsched.apis.karmada.selectors import ResourceSelector, parse_resource_selector
from gitsched.apis.karmada.suspension import find_suspended
from gitsched.model.document import Document, Key, group_of, member
from gitsched.model.finding import Finding, locate
from gitsched.model.scope import is_built_in

_NAMED = 3
_ALIKE = 0.85
_LOOKUPS = 100
"""Names that a nearest one is looked for at most: each is compared with all that there are."""


def remind(policies: Collection[Policy], preemption: bool, fleet: Collection[str], stock: Stock) -> tuple[Finding, ...]:
    """Every finding about the policies themselves. `preemption` says whether settings allow it, `fleet` has the names of all clusters."""
    return (
        *find_suspended(policies),
        *find_idle_preemption(policies, preemption),
        *find_strangers(policies, fleet),
        *find_idle(policies, stock),
    )


class Words:
    """Names that there are, to tell what was meant by one that there is not. `alike` is how near it has to be, from 0 to 1."""

    def __init__(self, names: Iterable[str], alike: float) -> None:
        self._names, self._alike = sorted(names), alike
        self._known: dict[str, str] = {}

    def near(self, name: str) -> str:
        """The nearest one; "" where none is near, or too many were asked for already."""
        if name not in self._known:
            if len(self._known) >= _LOOKUPS:
                return ""
            from difflib import get_close_matches  # rarely needed

            self._known[name] = next(iter(get_close_matches(name[:100], self._names, n=1, cutoff=self._alike)), "")
        return self._known[name]


class Stock:
    """What there is to select: kinds with their versions, and who is where. Labels do not count, so that it is the same as long as no
    object comes or goes."""

    def __init__(self, templates: Mapping[Key, Document], hidden: Iterable[tuple[str, str]]) -> None:
        """`hidden` are the groups and kinds of which there is something that is no template."""
        self.versions: dict[str, set[str]] = {}
        self._places: set[tuple[str, str, str]] = set()
        self._templates = templates
        for key, document in templates.items():
            self.versions.setdefault(key.kind, set()).add(document.api_version)
            self._places.add((document.api_version, key.kind, key.namespace))
        self._hidden = frozenset(hidden)
        self.kinds = Words(self.versions, _ALIKE)

    def has(self, selector: ResourceSelector) -> bool:
        """Whether a selector means anything, as far as kind, namespace and name go; what is hidden may be anything of its kind."""
        api_version, kind, namespace, name = selector[:4]
        if (group_of(api_version), kind) in self._hidden:
            return True
        if api_version not in self.versions.get(kind, ()) or (namespace and (api_version, kind, namespace) not in self._places):
            return False
        return not name or name in self._names[api_version, kind, namespace]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str, str], set[str]]:
        """The names of each kind, by namespace and, under "", of all; few policies ask for any."""
        names: dict[tuple[str, str, str], set[str]] = {}
        for key, document in self._templates.items():
            for namespace in {key.namespace, ""}:
                names.setdefault((document.api_version, key.kind, namespace), set()).add(key.name)
        return names


def find_idle(policies: Collection[Policy], stock: Stock) -> Iterator[Finding]:
    """One finding at most for each policy: of a selector that looks like a slip of the pen, else that all of them select nothing."""
    for policy in policies:
        selectors = [parse_resource_selector(body) for body in policy.spec.get("resourceSelectors") or ()]
        idle = [selector for selector in selectors if not stock.has(selector)]
        used = {selector.kind for selector in selectors if selector not in idle}
        slip = next(filter(None, (_tell_slip(selector, stock, used) for selector in idle if selector.kind not in used)), None)
        if slip is not None:
            message = f"{policy.key.title} selects {slip}"
            yield Finding("warning", "karmada-selects-nothing", message, locate(policy.document), policy.key.resource)
        elif idle and len(idle) == len(selectors):
            where = f"namespace {policy.key.namespace}" if policy.namespaced else "this repository"
            message = f"{policy.key.title} selects nothing: {where} has no {_tell_all(idle, policy.namespaced)}"
            yield Finding("info", "karmada-selects-nothing", message, locate(policy.document), policy.key.resource)


def _tell_slip(selector: ResourceSelector, stock: Stock, used: Collection[str]) -> str | None:
    """What is wrong with a selector whose kind is there by another name or version; None where there is nothing like it, or only what
    is `used` by the same policy."""
    written, group = f"{selector.kind} of {selector.api_version}", group_of(selector.api_version)
    versions = stock.versions.get(selector.kind)
    if versions is not None:
        # Many a project has named a kind of its own Service or Ingress: that says nothing of those of Kubernetes.
        strange = is_built_in(group) and not any(map(is_built_in, map(group_of, versions)))
        here = " and ".join(sorted(versions))
        return None if strange or selector.api_version in versions else f"{written}, and what is here is of {here}"
    near = stock.kinds.near(selector.kind)
    return f"{written}, and there is none; did you mean {near}?" if near and near not in used else None


def _tell_all(selectors: list[ResourceSelector], namespaced: bool) -> str:
    told = []
    for selector in selectors[:_NAMED]:
        where = f"in namespace {selector.namespace}" if selector.namespace and not namespaced else ""
        told.append(" ".join(filter(None, (selector.kind, selector.name, where))))
    more = f" and {len(selectors) - _NAMED} more" if len(selectors) > _NAMED else ""
    return f"{', '.join(told)}{more}"


def find_strangers(policies: Collection[Policy], fleet: Collection[str]) -> Iterator[Finding]:
    """One finding for each policy that names clusters which nobody describes; none where no cluster is described at all."""
    known, words = frozenset(fleet), Words(fleet, 0.6)
    for policy in policies if known else ():
        strangers = sorted({name for group in _groups(policy) for name in map(str, group.get("clusterNames") or ())} - known)
        if not strangers:
            continue
        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        near = words.near(strangers[0]) if len(strangers) == 1 else ""
        hint = f"; did you mean {near}?" if near else ""
        message = f"{policy.key.title} names clusters that nobody describes: {', '.join(strangers[:_NAMED])}{more}{hint}"
        yield Finding("warning", "karmada-cluster-unknown", message, locate(policy.document), policy.key.resource)


def _groups(policy: Policy) -> Iterator[Mapping[str, Any]]:
    placement = policy.spec.get("placement") or {}
    yield member(placement, "clusterAffinity") or {}
    yield from placement.get("clusterAffinities") or ()
