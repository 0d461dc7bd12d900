"""Find credentials that Krake's documents contain in plain text, so that every reader of the repository can use them.

Messages name the field and never contain its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from gitsched.model.document import Body, as_object, get_field
from gitsched.model.finding import Issue, Pointer
from gitsched.named_tuples import NamedTuple

CODE: Final = "krake-secret-in-git"
_NOT_USED = "remove it here, since gitsched does not use it, and revoke it"
_READ_AT_RUNTIME = "use tokenFrom instead, and revoke it"

_USER_FIELDS = ("token", "password", "client-key-data")
_AUTH_PROVIDER_FIELDS = ("access-token", "id-token", "refresh-token", "client-secret")
_STATUS_FIELDS = ("complete_token", "complete_key", "shutdown_token", "shutdown_key")
_SECRET_NAME = re.compile(r"token|secret|passw|passphrase|private[_-]?key|api[_-]?key", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"^[^/?#]{0,20}//[^/?#:@]*:([^/?#]+)@")
"""The password of a URL, also of one that is no valid HTTP URL."""
_PATH_SUFFIXES = ("file", "path", "dir", "url")
"""Ends of names whose value says where a secret is."""
_PLACEHOLDER = re.compile(
    r"ENC\[.*\]|\$\{.*\}|\$\(.*\)|\{\{.*\}\}|<.*>|\*+|x{3,}|(DATA\+OMITTED|REDACTED|OMITTED|withheld|changeme)",
    re.IGNORECASE | re.DOTALL,
)
"""Values that are no secrets: encrypted by SOPS, variables, and what kubectl prints in place of credentials."""


class CredentialField(NamedTuple):
    """A field with a credential, and what to do with it."""

    pointer: Pointer
    cure: str = _NOT_USED


def report_credentials(body: Body) -> Iterator[Issue]:
    """Yield a warning for each credential in a valid document of Krake."""
    for pointer, cure in find_credentials(body):
        field = next(name for name in reversed(pointer) if isinstance(name, str))
        message = f"{field} contains a secret that every reader of this repository can use: {cure}"
        yield Issue("warning", CODE, message, pointer)


def find_credentials(body: Body) -> Iterator[CredentialField]:
    """Yield the fields of a document with a credential in plain text."""
    spec = as_object(body.get("spec"))
    match str(body.get("kind")):
        case "Application":
            yield from _find_fields(as_object(body.get("status")), ("status",), _STATUS_FIELDS)
        case "Cluster":
            yield from _find_in_kubeconfig(as_object(spec.get("kubeconfig")))
        case "Cloud" | "GlobalCloud":
            yield from _find_in_openstack(as_object(spec.get("openstack")), ("spec", "openstack"))
        case "Project":
            yield from _find_in_openstack(spec, ("spec",))
        case "InfrastructureProvider" | "GlobalInfrastructureProvider":
            kind = str(spec.get("type"))
            settings = as_object(spec.get(kind))
            yield from _find_fields(settings, ("spec", kind), ("password", "token"))
            yield from _find_in_url(settings, ("spec", kind), "url")
        case "MetricsProvider" | "GlobalMetricsProvider":
            kind = str(spec.get("type"))
            settings = as_object(spec.get(kind))
            found = (*_find_in_url(settings, ("spec", kind), "url"), *_find_fields(settings, ("spec", kind), ("token",)))
            yield from (credential._replace(cure=_READ_AT_RUNTIME) for credential in found)


def _find_in_kubeconfig(kubeconfig: Body) -> Iterator[CredentialField]:
    for at, entry in _list_entries(kubeconfig.get("clusters")):
        path: Pointer = ("spec", "kubeconfig", "clusters", at, "cluster")
        for name in ("server", "proxy-url"):
            yield from _find_in_url(as_object(entry.get("cluster")), path, name)
    for at, entry in _list_entries(kubeconfig.get("users")):
        user, path = as_object(entry.get("user")), ("spec", "kubeconfig", "users", at, "user")
        yield from _find_fields(user, path, _USER_FIELDS)
        provider = as_object(get_field(user, "auth-provider", "config"))
        yield from _find_fields(provider, (*path, "auth-provider", "config"), _AUTH_PROVIDER_FIELDS)
        yield from _find_in_exec(as_object(user.get("exec")), (*path, "exec"))


def _find_in_exec(command: Body, path: Pointer) -> Iterator[CredentialField]:
    """Yield the variables and arguments of a credential plug-in that are credentials themselves, judged by their names."""
    for at, variable in _list_entries(command.get("env")):
        if _names_secret(str(variable.get("name"))) and _is_secret(variable.get("value")):
            yield CredentialField((*path, "env", at, "value"))
    arguments = command.get("args")
    listed = list(map(str, arguments)) if isinstance(arguments, list) else []
    for at, argument in enumerate(listed):
        name, equals, value = argument.partition("=")
        if not name.startswith("-") or not _names_secret(name):
            continue
        if equals and _is_secret(value):
            yield CredentialField((*path, "args", at))
        following = listed[at + 1] if not equals and at + 1 < len(listed) else "-"
        if not following.startswith("-") and _is_secret(following):
            yield CredentialField((*path, "args", at + 1))


def _find_in_openstack(settings: Body, path: Pointer) -> Iterator[CredentialField]:
    auth, below = as_object(settings.get("auth")), (*path, "auth")
    yield from _find_fields(as_object(get_field(auth, "password", "user")), (*below, "password", "user"), ("password",))
    yield from _find_fields(as_object(auth.get("application_credential")), (*below, "application_credential"), ("secret",))
    yield from _find_in_url(settings, path, "url")


def _find_fields(parent: Body, path: Pointer, names: tuple[str, ...]) -> Iterator[CredentialField]:
    yield from (CredentialField((*path, name)) for name in names if _is_secret(parent.get(name)))


def _find_in_url(parent: Body, path: Pointer, name: str) -> Iterator[CredentialField]:
    found = _URL_PASSWORD.search(str(parent.get(name)))
    if found is not None and _is_secret(found[1]):
        yield CredentialField((*path, name))


def _names_secret(name: str) -> bool:
    """Return whether a variable or option of this name has a secret as its value."""
    return bool(_SECRET_NAME.search(name)) and not name.lower().endswith(_PATH_SUFFIXES)


def _is_secret(value: Any) -> bool:
    """Return whether a value is neither missing nor a placeholder."""
    return value not in (None, "", False) and not isinstance(value, dict | list) and not _PLACEHOLDER.fullmatch(str(value).strip())


def _list_entries(value: Any) -> Iterator[tuple[int, Body]]:
    """Yield the objects of a list with their indexes."""
    entries = value if isinstance(value, list) else ()
    yield from ((at, entry) for at, entry in enumerate(entries) if isinstance(entry, dict))
