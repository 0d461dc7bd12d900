"""Workloads that differ between clusters: Bundles and overlays."""
