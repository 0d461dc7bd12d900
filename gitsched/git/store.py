"""The two ends of a reconcile: where manifests come from and where decisions go."""

from __future__ import annotations

from gitsched.git.output import Output, open_output
from gitsched.git.source import Source, open_source

__all__ = ["Output", "Source", "open_output", "open_source"]
