"""Failover, graceful eviction and failback."""
