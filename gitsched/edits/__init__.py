"""Edits of YAML and JSON text that give a document another value and keep everything else: comments, indentation, order, quotes."""
