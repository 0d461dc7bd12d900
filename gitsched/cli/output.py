"""Write results to stdout, and logs and progress to stderr."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

DEFAULT_WIDTH = 160
"""Columns where nobody looks at a terminal, and COLUMNS does not say."""

_CI_COMMAND = re.compile(r"(##(?:vso|teamcity)?)\[", re.IGNORECASE)
LOGGER = logging.getLogger("gitsched")


def show(text: str) -> None:
    """Write to stdout. A reader that has gone (`| head`) is no error: the exit code still tells what the command found."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more while it closes stdout, so give it another one.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_text(text: str) -> None:
    """As `show`, of what people read."""
    from gitsched.report.terminal import escape_ci_commands

    show(escape_ci_commands(text))


def show_as(form: str, text: Callable[[int], str], data: Callable[[], dict[str, Any]]) -> None:
    """Write a result as text for the present width, or as JSON or YAML."""
    if form == "text":
        show_text(text(find_width()))
    elif form == "json":
        show(format_json(data()))
    else:
        from gitsched.render.yaml import dump

        show(dump(data()))


def format_json(data: dict[str, Any]) -> str:
    """Data as every JSON of the program is written."""
    import json

    return escape_json(json.dumps(data, indent=2)) + "\n"


def escape_json(text: str) -> str:
    """JSON to the same effect, in which the runner of a pipeline finds no command to itself."""
    return _CI_COMMAND.sub(r"\1\\u005b", text)


def find_width() -> int:
    """Columns of the terminal, or COLUMNS, or enough."""
    return (
        shutil.get_terminal_size((80 if sys.stdout.isatty() else DEFAULT_WIDTH, 24)).columns if _is_width_known() else DEFAULT_WIDTH
    )


def _is_width_known() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()


@contextmanager
def show_progress(message: str) -> Iterator[None]:
    """A sign of life on stderr while something takes time, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    # Here, because a pipeline should not pay for it.
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield


class _LogFormatter(logging.Formatter):
    """One line a record: a JSON object, or time, level and message. `extra={"fields": {...}}` adds members."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def format(self, record: logging.LogRecord) -> str:
        from gitsched.report.terminal import escape_ci_commands, escape_unprintable

        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, Any] = getattr(record, "fields", {})
        if self.form == "json":
            import json

            entry = {"time": time, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
            return escape_json(json.dumps(entry))
        return f"{time} {record.levelname.lower():<7} {escape_ci_commands(escape_unprintable(record.getMessage()))}"


def configure_logging(form: str) -> None:
    """Let gitsched's log go to stderr, in text or JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LogFormatter(form))
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
