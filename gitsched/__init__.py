"""A Git repository as the control plane of a fleet of clusters."""
