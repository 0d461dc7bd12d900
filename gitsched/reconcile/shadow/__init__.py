"""Compare decisions with those of a running hub, from two dumps."""
