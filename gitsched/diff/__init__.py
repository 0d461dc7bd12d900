"""Comparison of two plans: moves with their causes, manifest changes, retained placements, resilience."""
