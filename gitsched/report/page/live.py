"""How a page is served by `gitsched watch`: its version, and the other pages."""

from __future__ import annotations

from gitsched.named_tuples import NamedTuple

PAGES = (("./", "fleet", "Fleet"), ("history", "history", "History"))
"""Links to the pages, relative so that they work behind any prefix of a path, with their names and titles."""


class LiveView(NamedTuple):
    """The version of a live page, which the events name, its name in PAGES, the name of the source repository, "" for a local one, when the
    changes were made that it shows, "" if the last run made them, and why the first run failed, "" where one has succeeded. `last_run` is a
    sentence about the last run for browsers without JavaScript, and `run_time` its time, "" where that is left out."""

    version: str
    name: str
    repository: str = ""
    changed: str = ""
    failure: str = ""
    last_run: str = ""
    run_time: str = ""
