"""Compare two plans: moves with their causes, manifest differences, retained placements, resilience."""
