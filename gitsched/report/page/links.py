"""Text with links to lines of files, commits and pull requests on the forge of the source."""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from gitsched.model.finding import Location
from gitsched.model.history import SourceChange
from gitsched.model.time import format_time
from gitsched.model.web_links import WebLinks
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import abbreviate_oid, escape_unprintable

_PLACE = re.compile(r"(?<![\w/.-])((?:[\w@+][\w@+.-]*/)*[\w@+.-]+\.(?:ya?ml|json)):(\d+)(?::\d+)?(?![\w/.-])")
_PULL = re.compile(r"(?<![\w/])[#!](\d{1,9})\b")


class PageLinks(NamedTuple):
    """The links of one page: `commit` is the source commit whose files are meant, and `base` the one with what it removes. Without `web`
    there are none."""

    web: WebLinks | None = None
    commit: str = ""
    base: str = ""

    def link_places(self, text: str) -> Markup:
        """Return an escaped text in which each path:line is a link; "was path:line" is one of the base."""
        web = self.web
        if web is None or not self.commit:
            return escape(text)

        def find_address(found: re.Match[str]) -> str:
            commit = self.base if text.endswith("was ", 0, found.start()) else self.commit
            return web.link_file(commit, found[1], int(found[2][:9])) if commit else ""

        return _link(_PLACE, text, find_address)

    @property
    def patterns(self) -> dict[str, str]:
        """The addresses of a line of a file in the commit and in the base, with {path} and {line}, for the script; {} without any."""
        web = self.web
        if web is None or not self.commit:
            return {}
        return {name: web.make_file_pattern(oid) for name, oid in (("commit", self.commit), ("base", self.base)) if oid}

    def link_location(self, location: Location | None, text: str) -> Markup:
        """Return an escaped text that is a link to a location."""
        if self.web is None or not self.commit or location is None:
            return escape(text)
        return _format_link(self.web.link_file(self.commit, location.path, location.line), text)

    def link_pulls(self, text: str) -> Markup:
        """Return an escaped text, such as the subject of a commit, in which each number of a pull request is a link."""
        web = self.web
        return escape(text) if web is None else _link(_PULL, text, lambda found: web.link_pull(found[1]))

    def link_commit(self, commit: str, text: str) -> Markup:
        """Return an escaped text that is a link to a commit."""
        return escape(text) if self.web is None or not commit else _format_link(self.web.link_commit(commit), text)

    def describe_commit(self, commit: SourceChange) -> Markup:
        """Return the id of a commit, its subject, its author and its time, with links."""
        time = Markup('<time datetime="{0}">{0}</time>').format(format_time(commit.time)) if commit.time is not None else ""
        origin = Markup(", ").join(part for part in (escape_unprintable(commit.author), time) if part)
        parts = (
            self.link_commit(commit.commit, escape_unprintable(abbreviate_oid(commit.commit))),
            self.link_pulls(escape_unprintable(commit.subject)),
            Markup("({})").format(origin) if origin else "",
        )
        return Markup(" ").join(part for part in parts if part)


def _link(pattern: re.Pattern[str], text: str, find_address: Callable[[re.Match[str]], str]) -> Markup:
    parts, end = [], 0
    for found in pattern.finditer(text):
        address = find_address(found)
        parts += [escape(text[end : found.start()]), _format_link(address, found[0]) if address else escape(found[0])]
        end = found.end()
    return Markup("").join((*parts, escape(text[end:])))


def _format_link(address: str, text: str) -> Markup:
    return Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, text)
