"""Immutable types that all layers share; they import nothing from other layers."""
