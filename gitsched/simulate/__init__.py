"""Simulate events on a plan: lost, drained or added clusters, scaled workloads, counterfactual changes."""
