"""Validate and normalize repository URLs, and redact credentials in them."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from gitsched.model.errors import Permanent

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
_REMOTE_HELPER = re.compile(r"[^/\[@]*::")
_SCP = re.compile(r"(?:([^@:/]+)@)?(\[[^\]/]+\]|[^@:/\[\]]+):(.+)")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029]|%0[0ad]", re.IGNORECASE)
_HTTP_CREDENTIALS = re.compile(r"(?i)\b(https?://)[^/\s@'\"]+(?:@[^/\s@'\"]*)*@")
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://[^/\s@:'\"]*):[^/\s'\"]*@")
_SECRET = re.compile(r"(?i)((?:authorization: *\w+ |(?:access_|private_|oauth_)?token=|password=))[^\s&'\"]+")
_MAX_LENGTH = 4096


def redact(text: str) -> str:
    """Replace every credential in a URL, a query or a header by `***`."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", _HTTP_CREDENTIALS.sub(r"\1***@", text)))


def is_url(location: str) -> bool:
    """Return whether a location is a URL, `scheme://...` or `[user@]host:path`, rather than a path. An existing path is a path."""
    if _SCHEME.match(location) or _REMOTE_HELPER.match(location):
        return True
    return _SCP.fullmatch(location) is not None and not Path(location).exists()


def check_url(url: str) -> str:
    """Return the URL; Permanent unless it is https, ssh (`ssh://` or `host:path`), file, an absolute path, or http to this
    machine.

    Rejected are remote helpers (`ext::...`), anything that git or ssh could parse as an option, and control characters.
    """
    shown = redact(url[:200]).encode("unicode_escape").decode()
    if not url or len(url) > _MAX_LENGTH or _CONTROL_CHARACTERS.search(url) or url != url.strip():
        raise Permanent(f"not the URL of a repository: '{shown}'")
    if url.startswith("-") or _REMOTE_HELPER.match(url):
        raise Permanent(f"refusing the URL '{shown}': it names an option or a remote helper")
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _check_path_or_scp(url, shown)
    try:
        parts = urlsplit(url)
        host, user, _ = parts.hostname or "", parts.username or "", parts.port
    except ValueError as error:
        raise Permanent(f"not the URL of a repository: '{shown}': {error}") from error
    name = scheme[1].lower()
    if name not in ("https", "http", "ssh", "file"):
        raise Permanent(f"refusing the URL '{shown}': use https, ssh or file, not {name}")
    if name == "http" and not is_loopback(url):
        raise Permanent(f"refusing the URL '{shown}': plain http sends credentials and content unencrypted; use https")
    if name == "file":
        if host or not parts.path:
            raise Permanent(f"not the URL of a repository: '{shown}': file needs an absolute path after file://")
    elif not host or any(part.startswith("-") for part in (host, user, parts.path.removeprefix("/"))):
        raise Permanent(f"refusing the URL '{shown}': its host, user or path is empty or looks like an option")
    return url


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def identify_repository(url: str) -> str:
    """Return an id that two URLs of the same repository share: host and path, without protocol, user, port and `.git`.

    A local path is resolved; a worktree and the Git directory in it have the same id.
    """
    if _SCHEME.match(url):
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        short = None if url.startswith("/") else _SCP.fullmatch(url)
        host, path = (short[2].lower(), short[3]) if short else ("", url)
    if not host:
        return str(Path(path).resolve()).removesuffix("/.git")
    return f"{host}/{path.strip('/').removesuffix('.git')}"


def _check_path_or_scp(url: str, shown: str) -> str:
    if url.startswith("/"):
        return url
    short = _SCP.fullmatch(url)
    if short is None:
        raise Permanent(f"not the URL of a repository: '{shown}': a path has to be absolute")
    user, host, path = short.groups()
    if (user or "").startswith("-") or host.startswith("-") or path.startswith("-"):
        raise Permanent(f"refusing the URL '{shown}': its host, user or path looks like an option")
    return url
