"""The fixtures of scenarios."""

from __future__ import annotations

from tests.scenarios.conftest import fleet, make_fleet

__all__ = ["fleet", "make_fleet"]
