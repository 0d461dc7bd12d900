"""The settings `output.overlap` and `output.overlapMax`: how long a copy stays in a cluster that a workload leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection

_MAXIMUM = timedelta(hours=1)


class OverlapConfig(NamedTuple):
    """`duration` is how long a copy stays after its replacement is delivered; zero removes it in the same commit.

    `maximum` is how long it stays at most while the replacement is not reported healthy, or while the workload keeps moving.
    """

    duration: timedelta = timedelta(minutes=10)
    maximum: timedelta = _MAXIMUM


def parse_overlap(output: ConfigSection) -> OverlapConfig:
    """Parse the settings from the section `output`. Raises SettingError for a wrong type or value, and for a maximum that is too short."""
    duration = output.get_duration("overlap", OverlapConfig().duration)
    maximum = output.get_duration("overlapMax", max(duration, _MAXIMUM))
    if maximum < duration:
        output.reject("overlapMax", "a duration that is not shorter than output.overlap")
    return OverlapConfig(duration, maximum)
