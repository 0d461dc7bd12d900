"""Addresses of commits, files and pull requests on the web pages of a forge."""

from __future__ import annotations

from urllib.parse import quote

from gitsched.named_tuples import NamedTuple


class WebLinks(NamedTuple):
    """The address of a repository on its forge, and the patterns of what is below it."""

    repository: str
    file: str
    commit: str
    pull: str

    def link_file(self, commit: str, path: str, line: int) -> str:
        """Return the address of a line of a file in a commit."""
        return self.repository + self.file.format(commit=quote(commit), path=quote(path), line=line)

    def make_file_pattern(self, commit: str) -> str:
        """Return the address of a line of a file in a commit, with {path} and {line} for these."""
        return self.repository + self.file.format(commit=quote(commit), path="{path}", line="{line}")

    def link_commit(self, commit: str) -> str:
        """Return the address of a commit."""
        return self.repository + self.commit.format(commit=quote(commit))

    def link_pull(self, number: str) -> str:
        """Return the address of a pull request or merge request."""
        return self.repository + self.pull.format(number=quote(number))
