"""Deliver changes in waves of clusters."""
