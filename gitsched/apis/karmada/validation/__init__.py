"""Validation of Karmada's documents beyond their schemas."""
