"""Withhold changes that look like a mistake."""
