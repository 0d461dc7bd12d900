"""Caches that let a run do only what changed; each may be deleted at any time."""
