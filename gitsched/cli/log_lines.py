"""Lines of the log, in which a CI runner finds no commands."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from logging import LogRecord
from typing import Any

from gitsched.report.lines import escape_ci_commands, escape_unprintable

_CI_COMMAND = re.compile(r"(##(?:vso|teamcity)?)\[", re.IGNORECASE)


def format_record(record: LogRecord, form: str) -> str:
    """Return a record as one line: a JSON object, or time, level and message. `extra={"fields": {...}}` adds JSON members."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    level = record.levelname.lower()
    if form == "json":
        fields: dict[str, Any] = getattr(record, "fields", {})
        return escape_json(json.dumps({"time": time, "level": level, "message": record.getMessage(), **fields}))
    return f"{time} {level:<7} {escape_ci_commands(escape_unprintable(record.getMessage()))}"


def escape_json(text: str) -> str:
    """Return equivalent JSON in which a CI runner finds no commands."""
    return _CI_COMMAND.sub(r"\1\\u005b", text)
