"""A resident process: when to run again, what it tells about itself, and who may wake it."""

from __future__ import annotations

from gitsched.watch.bell import Bell
from gitsched.watch.ending import Abandoned, heed_signals
from gitsched.watch.loop import LONGEST, Attempt, Listener, pause, watch
from gitsched.watch.stamps import stamp, wait_for_change

__all__ = ["LONGEST", "Abandoned", "Attempt", "Bell", "Listener", "heed_signals", "pause", "stamp", "wait_for_change", "watch"]
