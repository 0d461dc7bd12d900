"""Override policies and overriders."""
