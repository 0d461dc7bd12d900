"""gitsched's own API group."""
