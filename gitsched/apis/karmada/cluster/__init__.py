"""Clusters: scheduling candidates and their taints."""
