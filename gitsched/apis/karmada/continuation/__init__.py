"""Continuation of an engine with changed documents: which workloads a change can affect."""
