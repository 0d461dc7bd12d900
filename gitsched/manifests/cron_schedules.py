"""The schedules of CronJobs, as the library that Kubernetes uses parses them (github.com/robfig/cron, ParseStandard)."""

from __future__ import annotations

import re

_CRON_NAMES = {
    name: number
    for names, first in (("jan feb mar apr may jun jul aug sep oct nov dec", 1), ("sun mon tue wed thu fri sat", 0))
    for number, name in enumerate(names.split(), first)
}
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_CRON_ENTRY = re.compile(r"(?:[*?]|([0-9]{1,4}|[a-z]{3})(?:-([0-9]{1,4}|[a-z]{3}))?)(?:/([0-9]{1,4}))?", re.ASCII)
_CRON_MACROS = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))


def is_cron_schedule(text: str) -> bool:
    """Return whether a text is a schedule of a CronJob: five fields, or a macro such as @daily or @every 1h. A time zone is not checked."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2]
    if text.lstrip().startswith("@"):
        return text.strip() in _CRON_MACROS or text.strip().startswith("@every ")
    fields = text.lower().split()
    return len(fields) == len(_CRON_RANGES) and all(map(_is_cron_field, fields, _CRON_RANGES))


def _is_cron_field(text: str, limits: tuple[int, int]) -> bool:
    for part in filter(None, text.split(",")):
        match = _CRON_ENTRY.fullmatch(part)
        if match is None or match[3] == "0":
            return False
        numbers = [_CRON_NAMES.get(word, -1) if word.isalpha() else int(word) for word in match.groups()[:2] if word]
        if any(not limits[0] <= number <= limits[1] for number in numbers) or numbers != sorted(numbers):
            return False
    return True
