"""argv and environment become values; one module a verb; exit codes; no logic."""
