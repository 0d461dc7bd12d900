"""Bindings: the previous one, the new one, its target clusters."""
