"""Find the web pages of a repository from its URL, where the name of the host says which forge it is."""

from __future__ import annotations

from urllib.parse import quote

from gitsched.git.urls import identify_repository, is_url
from gitsched.model.web_links import WebLinks

_PATTERNS = {
    "github": ("/blob/{commit}/{path}#L{line}", "/commit/{commit}", "/pull/{number}"),
    "gitlab": ("/-/blob/{commit}/{path}#L{line}", "/-/commit/{commit}", "/-/merge_requests/{number}"),
    "gitea": ("/src/commit/{commit}/{path}#L{line}", "/commit/{commit}", "/pulls/{number}"),
}
_NAMES = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}


def find_web_links(url: str | None) -> WebLinks | None:
    """Return the addresses for a repository at this URL; None for a local one, or if its host names no known forge."""
    if not url or not is_url(url):
        return None
    host, _, path = identify_repository(url).partition("/")
    forge = next((_NAMES[label] for label in host.partition(":")[0].split(".") if label in _NAMES), None)
    return WebLinks(f"https://{host}/{quote(path)}", *_PATTERNS[forge]) if forge is not None and path else None
