"""Propagation policies: selection of workloads, placement, warnings."""
