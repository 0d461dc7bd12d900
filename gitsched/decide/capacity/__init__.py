"""Capacity of clusters that workloads of all APIs share: what they use, and what that leaves for those which are placed next."""
