"""Tokens and webhook secrets of the operator, read from a file each time (so that they can be rotated) or from the environment.
Never logged."""

from __future__ import annotations

from pathlib import Path

from gitsched.model.errors import Permanent

_MAX_BYTES = 1 << 14
_MAX_LINES = 8


class Credential:
    """A secret, or several secrets in a file, one a line: the old and the new one during rotation.

    `name` is its name in messages.
    """

    def __init__(
        self, name: str, *, value: str = "", path: Path | None = None, max_lines: int = _MAX_LINES, max_bytes: int = _MAX_BYTES
    ) -> None:
        self.name = name
        self._value, self._path, self._max_lines, self._max_bytes = value, path, max_lines, max_bytes

    def read(self) -> tuple[str, ...]:
        """Return the current secrets, at least one. Raises Permanent without secret text in its message."""
        text = self._value
        if self._path is not None:
            try:
                with self._path.open("rb") as file:
                    text = file.read(self._max_bytes + 1).decode()
            except (OSError, UnicodeDecodeError) as error:
                raise Permanent(
                    f"the {self.name} cannot be read from {self._path}: {getattr(error, 'strerror', None) or 'it is not text'}"
                ) from None
        lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not lines or len(lines) > self._max_lines or len(text) > self._max_bytes:
            raise Permanent(f"the {self.name} is empty or too long{f': {self._path}' if self._path else ''}")
        # Other characters are invalid in a header, and the HTTP client's error would show them.
        if not all(" " <= character <= "~" for line in lines for character in line):
            raise Permanent(f"the {self.name} contains characters that are not allowed in an HTTP header")
        return lines

    def check_outside(self, directory: Path) -> None:
        """Raise Permanent when the file is inside a repository's directory, where it could be committed."""
        if self._path is not None and self._path.resolve().is_relative_to(directory.resolve()):
            raise Permanent(f"the {self.name} is in {self._path}, inside the repository; store it outside")
