"""What the options of `plan` and `simulate` call the parts of a fleet that are lost together."""

from __future__ import annotations

FAILURE_DOMAINS = {"clusters": "cluster", "nodes": "node", "zones": "zone", "regions": "region", "providers": "provider"}
"""Kinds of failure domains by their plural."""
MANY_LOSSES = {"pairs": "pair", "random": "random"}
"""Losses of several clusters by what --sweep calls them."""
