"""Remove credentials from Krake's documents before they are copied to the output branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from gitsched.model.document import Body

SECRET_FIELDS: Final = frozenset(
    ("auth", "kubeconfig", "password", "token", "complete_token", "complete_key", "shutdown_token", "shutdown_key")
)
"""Fields with credentials of a cluster, cloud or metrics provider, and those that an Application's status gives to its hooks."""
_REDACTED = "withheld"


def remove_secrets(body: Body) -> Body:
    """Return the document with every text below a secret member replaced, so that it keeps its form; the same object without any.

    The objects of an Application are not changed: all of them are hidden while the Application has no cluster.
    """
    return cast("Body", _redact(body, secret=False))


def _redact(value: Any, *, secret: bool) -> Any:
    if isinstance(value, dict):
        members = {
            name: entry
            if name == "manifest"
            else _redact(entry, secret=secret or name in SECRET_FIELDS or _has_credentials(name, entry))
            for name, entry in value.items()
        }
        return members if any(members[name] is not entry for name, entry in value.items()) else value
    if isinstance(value, list):
        entries = [_redact(entry, secret=secret) for entry in value]
        return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value
    return _REDACTED if secret and value is not None and value != _REDACTED else value


def _has_credentials(name: str, value: Any) -> bool:
    """Return whether an address may contain a user and a password."""
    return "@" in str(value) and (name == "url" or (isinstance(value, str) and "://" in value))
