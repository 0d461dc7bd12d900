"""Check numbers, names and data of objects: rules of `gitsched.kinds.field_relations` that few kinds have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gitsched.kinds.field_relations import ACCEPTED_DATA_SIZE, SECRET_KEYS
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Pointer

_TOKEN, _ACCOUNT = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"

_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_ACCOUNT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_PLACEHOLDER: Final = re.compile(r"\$\{|\{\{|\$\(|<")
_SHOWN = 80

Found = Iterator[tuple[Pointer, str, str]]
"""What is wrong: its place below the object, the code and the message."""
Check = Callable[[Body], Iterable[tuple[Pointer, str, str]]]


def is_placeholder(value: object) -> bool:
    return isinstance(value, str) and bool(_PLACEHOLDER.search(value))


def shorten(value: object) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))
    return f'"{text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."}"'


def secret_keys() -> Check:
    """A Secret has the keys of its type."""

    def check(value: Body) -> Found:
        annotations = get_field(value, "metadata", "annotations")
        if value.get("type") == _TOKEN and not (isinstance(annotations, dict) and annotations.get(_ACCOUNT)):
            yield (), "missing-field", f"a Secret of the type {_TOKEN} needs the annotation {_ACCOUNT}"
        present = {name for member in ("data", "stringData") for name in value.get(member) or ()}
        for key in SECRET_KEYS.get(str(value.get("type")), ()):
            if key not in present:
                yield (), "missing-field", f"a Secret of the type {value['type']} needs the key {key}"

    return check


def only_with(member: str, *conditions: str) -> Check:
    """A member, or one of the entries of a list (`ports[].nodePort`), needs another one, or one of some values (`type=NodePort`)."""
    outer, _, inner = member.rpartition("[].")
    wanted = [(name, text) for name, _, text in (condition.partition("=") for condition in conditions)]
    shown = " or ".join(f"{name}: {text}" if text else name for name, text in wanted)

    def check(value: Body) -> Found:
        if any(value.get(name) and text in ("", str(value[name])) for name, text in wanted):
            return
        if any(mark in str(value.get(name)) for name, _ in wanted for mark in "$<{" if isinstance(value.get(name), str)):
            return
        entries = value.get(outer) if outer else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and entry.get(inner):
                yield (outer, index, inner), "invalid-field", f"'{inner}' is only allowed with {shown}"
        if not outer and value.get(member) not in (None, "", 0, [], {}):
            yield (member,), "invalid-field", f"'{member}' is only allowed with {shown}"

    return check


def trim(member: str) -> Check:
    """A text has no blanks around it."""

    def check(value: Body) -> Found:
        text = value.get(member)
        if isinstance(text, str) and text != text.strip():
            yield (member,), "wrong-format", f"'{member}' must not begin or end with a blank"

    return check


def refuse_address(member: str) -> Check:
    """A host name is no IP address."""

    def check(value: Body) -> Found:
        text = value.get(member)
        if isinstance(text, str) and _ADDRESS.fullmatch(text):
            yield (member,), "wrong-format", f"'{member}' must be a host name, not an address"

    return check


def service_account(namespace: str = "") -> Check:
    """The name of a ServiceAccount is one that it can have. An `optional` namespace is not empty, which kustomize refuses."""

    def check(value: Body) -> Found:
        name = value.get("name")
        if namespace and value.get("kind") == "ServiceAccount" and "namespace" in value and not value["namespace"]:
            yield ("namespace",), "wrong-format", "kustomize refuses an empty 'namespace' here: write one, or remove this line"
        if (
            value.get("kind") == "ServiceAccount"
            and isinstance(name, str)
            and not _ACCOUNT_NAME.fullmatch(name)
            and not any(mark in name for mark in "$<{")
        ):
            yield ("name",), "wrong-format", "'name' must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"

    return check


def limit_length(member: str, size: str) -> Check:
    """A name has at most so many characters."""

    def check(value: Body) -> Found:
        text = value.get(member)
        if isinstance(text, str) and len(text) > int(size) and not any(mark in text for mark in "$<{"):
            yield (member,), "out-of-range", f"'{member}' must have at most {size} characters here, not {len(text)}"

    return check


def limit_size(plain: str, encoded: str) -> Check:
    """The values of a mapping of texts and of one in Base64 have a limited size together.

    The texts of a Secret take the place of encoded values; a key that is in both mappings of a ConfigMap is an error.
    """

    def check(value: Body) -> Found:
        texts, coded = (part if isinstance(part := value.get(name), dict) else {} for name in (plain, encoded))
        both = next((name for name in coded if name in texts), None)
        if both is not None and encoded == "binaryData":
            yield (encoded, both), "invalid-field", f"{plain} has the key {both}, too: remove one of them"
        size = sum(len(text.encode("utf-8", "replace")) for text in texts.values() if isinstance(text, str))
        size += sum(
            len(text) * 3 // 4 - text[-2:].count("=") for name, text in coded.items() if isinstance(text, str) and name not in texts
        )
        if size > ACCEPTED_DATA_SIZE:
            yield (
                (),
                "out-of-range",
                f"the values have {size} bytes, and API servers accept {ACCEPTED_DATA_SIZE}: divide the object",
            )

    return check


def least_one(*names: str) -> Check:
    """At least one member is there, even if it is empty."""

    def check(value: Body) -> Found:
        if all(value.get(name) is None for name in names):
            yield (), "missing-field", f"one of {', '.join(names)} is required"

    return check


def one_not_zero(*members: str) -> Check:
    """One of two numbers is 0 and the other is not; a missing one has the value behind its `=`."""
    defaults = [(name, default) for name, _, default in (member.partition("=") for member in members)]

    def check(value: Body) -> Found:
        amounts = [str(default if (amount := value.get(name)) is None else amount) for name, default in defaults]
        zeros = [amount.rstrip("%").strip("0") == "" for amount in amounts]
        if zeros[0] == zeros[1] and not any(map(is_placeholder, amounts)):
            shown = " and ".join(f"'{name}'" for name, _ in defaults)
            assumed = "".join(f"; without a value '{name}' is {default}" for name, default in defaults if value.get(name) is None)
            yield (), "out-of-range", f"one of {shown} must be 0, and the other must not{assumed}"

    return check


def not_all_zero(*names: str) -> Check:
    zero = (0, "0", "0%")

    def check(value: Body) -> Found:
        if all(name in value and value[name] is not False and value[name] in zero for name in names):
            yield (names[-1],), "out-of-range", f"{' and '.join(names)} must not both be 0: nothing could be replaced"

    return check


def schedule(member: str) -> Check:
    def check(value: Body) -> Found:
        text = value.get(member)
        if not isinstance(text, str) or not text or is_placeholder(text):
            return
        from gitsched.manifests.cron_schedules import is_cron_schedule  # few sources have CronJobs

        if not is_cron_schedule(text):
            message = f"'{member}' must be five fields such as 0 4 * * 1-5, or a macro such as @daily, not {shorten(text)}"
            yield (member,), "wrong-format", message

    return check


def at_most(low: str, high: str) -> Check:
    def check(value: Body) -> Found:
        one, other = value.get(low), value.get(high)
        if isinstance(one, int) and isinstance(other, int) and one > other:
            yield (low,), "out-of-range", f"'{low}' must be at most '{high}', which is {other}, not {one}"

    return check
