"""Explanations of decisions and proposals for changes. Loaded only by commands that explain."""
