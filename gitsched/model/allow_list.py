"""What the operator allows gitsched to contact and to read for the source: hosts, other repositories, and tokens. By default nothing.

The source names metrics providers, forges and tokens; whoever can change it could otherwise send the secrets of the operator anywhere.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from gitsched.model.urls import parse_http_url, read_address
from gitsched.named_tuples import NamedTuple

OPERATOR_FILE: Final = "the operator's settings"
"""How messages name the file of --operator-settings."""
_HOST = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*\.?", re.ASCII)
_ADDRESS = re.compile(r"[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F.]*")
_REMOTE = re.compile(r"(?=[\w./])(?:[\w.-]+(?::\d+)?)?(?:/[\w.~+-]+)*/?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

TokenSource = Literal["env", "file"]


class HostRule(NamedTuple):
    """A host name, an address, or `*.` and a domain. `port` is the only allowed port; None allows every one.

    `plain` also allows http without encryption, but no token is sent over it.
    """

    host: str
    port: int | None = None
    plain: bool = False

    def matches(self, host: str, port: int | None) -> bool:
        """Return whether the rule allows this host at this port."""
        name, pattern = host.lower().rstrip("."), self.host.lower().rstrip(".")
        is_host = pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))
        return is_host and self.port in (None, port)


ANY_HOST: Final = HostRule("*", plain=True)
"""For programs that choose the documents themselves; neither options nor files can contain it."""


class TokenRule(NamedTuple):
    """An environment variable or file that may be read for a token. With `hosts`, the token is sent to these only."""

    source: TokenSource
    name: str
    hosts: tuple[HostRule, ...] = ()


class Purpose(NamedTuple):
    """Why a host is contacted: `setting` is the member of allow.hosts in the operator's settings, `option` that of the command line."""

    setting: str
    option: str


METRICS: Final = Purpose("metrics", "--metrics-host")
STATUSES: Final = Purpose("statuses", "--statuses-host")


class AllowList(NamedTuple):
    """The hosts of metrics providers and of forges with commit statuses, other Git repositories (host, with organization and repository or
    without), and tokens."""

    metrics: tuple[HostRule, ...] = ()
    statuses: tuple[HostRule, ...] = ()
    remotes: tuple[str, ...] = ()
    tokens: tuple[TokenRule, ...] = ()

    def find_host_refusal(self, url: str, purpose: Purpose) -> str:
        """Return why a URL of the source may not be contacted and what would allow it; "" if it may."""
        parts = parse_http_url(url)
        if parts is None:
            return "its address is not an http or https URL"
        rules = self.statuses if purpose is STATUSES else self.metrics
        host, port = read_address(parts)
        matching = [rule for rule in rules if rule.matches(host, port)]
        shown = f"[{host}]" if ":" in host else host
        allowing = f"{purpose.option} {shown}, or {shown} in allow.hosts.{purpose.setting} of {OPERATOR_FILE}"
        if not matching:
            return f"the operator does not allow its host {host}; to allow it: {allowing}"
        if parts.scheme != "https" and not is_loopback_host(host) and not any(rule.plain for rule in matching):
            allowing = allowing.replace(shown, f"http://{shown}")
            return f"its address begins with http://, and only https is allowed; use https, or to allow http without a token: {allowing}"
        return ""

    def find_token_refusal(self, source: Mapping[str, object], url: str) -> str:
        """Return why the token of `tokenFrom` may not be read and sent to a URL, and what would allow it; "" if it may."""
        kind, name = name_token_source(source)
        if not name:
            return ""
        noun = f"the environment variable {name}" if kind == "env" else f"the file {name}"
        rules = [rule for rule in self.tokens if rule.source == kind and _same_source(kind, rule.name, name)]
        parts = parse_http_url(url)
        host, port = read_address(parts) if parts is not None else ("", None)
        if parts is None or (parts.scheme != "https" and not is_loopback_host(host)):
            return f"{noun} is not read, because a token is sent over https only; use https"
        allowing = f"--allow-token {kind}:{name}@{host}, or {kind}: {name} in allow.tokens of {OPERATOR_FILE}"
        if not rules:
            return f"the operator does not allow reading {noun}; to allow it: {allowing}"
        if not any(not rule.hosts or any(host_rule.matches(host, port) for host_rule in rule.hosts) for rule in rules):
            return f"the operator does not allow sending the token in {noun} to {host}; to allow it: {allowing}"
        return ""

    def allows_remote(self, name: str) -> bool:
        """Return whether the Git repository `name` (host and path) may be fetched."""
        return allows_remote(self.remotes, name)


def allows_remote(prefixes: Iterable[str], name: str) -> bool:
    """Return whether one of the prefixes is the Git repository `name` (host and path), its organization or its host. A host without port
    stands for all of its ports."""
    host, slash, path = name.partition("/")
    names = (f"{name}/", f"{host.partition(':')[0]}{slash}{path}/")
    return any(one.startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes for one in names)


NOTHING_ALLOWED: Final = AllowList()


def name_token_source(source: Mapping[str, object]) -> tuple[TokenSource, str]:
    """Return which environment variable or file `tokenFrom` names; the name is "" for none. The variable takes precedence."""
    if source.get("env"):
        return "env", str(source["env"])
    return "file", str(source.get("file") or "")


def is_loopback_host(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_host_rule(text: str) -> HostRule:
    """Parse `[https://|http://]host[:port]`; http:// also allows requests without encryption. ValueError says what is wrong."""
    scheme, separator, rest = text.strip().rpartition("://")
    if separator and scheme not in ("http", "https"):
        raise ValueError(f"{text!r} begins with neither https:// nor http://")
    host, port = rest.removesuffix("/"), ""
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    elif not _ADDRESS.fullmatch(host):
        host, _, port = host.partition(":")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} has no port between 1 and 65535")
    if not (_HOST.fullmatch(host) or _ADDRESS.fullmatch(host)):
        raise ValueError(f"{text!r} is not a host or '*.' and a domain, without path")
    return HostRule(host, int(port) if port else None, scheme == "http")


def parse_remote(text: str) -> str:
    """Parse `HOST[/PATH]` of Git repositories, without a scheme. ValueError says what is wrong."""
    if not _REMOTE.fullmatch(text) or ".." in text.split("/"):
        raise ValueError(f"{text!r} is not a host with organization and repository or without, such as github.com/example")
    return text


def parse_token_rule(text: str) -> TokenRule:
    """Parse `env:NAME[@HOST]` or `file:/PATH[@HOST]`. ValueError says what is wrong."""
    source, _, rest = text.strip().partition(":")
    name, at, host = rest.partition("@") if source == "env" else rest.rpartition("@") if "@" in rest else (rest, "", "")
    hosts = (parse_host_rule(host),) if at else ()
    if source == "env":
        return make_token_rule({"env": name}, hosts)
    if source == "file":
        return make_token_rule({"file": name}, hosts)
    raise ValueError(f"{text!r} begins with neither env: nor file:")


def make_token_rule(source: Mapping[str, object], hosts: Iterable[HostRule] = ()) -> TokenRule:
    """Return the rule for an environment variable or an absolute path. ValueError says what is wrong."""
    kind, name = name_token_source(source)
    if kind == "env" and not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an environment variable")
    if kind == "file" and not name.startswith("/"):
        raise ValueError(f"{name!r} is not an absolute path")
    return TokenRule(kind, name, tuple(hosts))


def _same_source(kind: TokenSource, one: str, other: str) -> bool:
    return one == other or (kind == "file" and other.startswith("/") and posixpath.normpath(one) == posixpath.normpath(other))
