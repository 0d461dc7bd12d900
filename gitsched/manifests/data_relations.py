"""Check the data of ConfigMaps and Secrets, and the length of names: rules of `gitsched.kinds.field_relations` that few kinds have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitsched.kinds.field_relations import ACCEPTED_DATA_SIZE, SECRET_KEYS
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Pointer

_TOKEN, _ACCOUNT = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"

Found = Iterator[tuple[Pointer, str, str]]
"""What is wrong: its place below the object, the code and the message."""
Check = Callable[[Body], Iterable[tuple[Pointer, str, str]]]


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
