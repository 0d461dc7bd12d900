"""URLs of servers and of repositories."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

_SCP_URL = re.compile(r"((?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*):(?!/)([^\s:]+)")


def parse_http_url(url: str) -> SplitResult | None:
    """Parse an http or https URL with a host; None for anything else."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if is_valid else None


def read_address(parts: SplitResult) -> tuple[str, int]:
    """Return the host and the port of a parsed http or https URL, by default that of the scheme."""
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def strip_credentials(url: str | None) -> str | None:
    """Return the URL of a repository without credentials, or None for a local path.

    User information is removed from http and https, where the user name may be a token; the password is removed from ssh. Query and
    fragment are removed.
    """
    if not url or not url.isprintable():
        return None
    if "://" not in url:
        return url if _SCP_URL.fullmatch(url) else None
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user = f"{parts.username}@" if parts.scheme == "ssh" and parts.username else ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))


def normalize_repository_url(url: str) -> str:
    """Return the URL of a repository with a scheme: `host:path` becomes an ssh URL, because Flux does not accept it."""
    scp = _SCP_URL.fullmatch(url) if "://" not in url else None
    return f"ssh://{scp[1]}/{scp[2]}" if scp else url
