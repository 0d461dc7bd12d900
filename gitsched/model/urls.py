"""Parsing of http and https URLs."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def parse_http_url(url: str) -> SplitResult | None:
    """Parse an http or https URL with a host; None for anything else."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if is_valid else None
