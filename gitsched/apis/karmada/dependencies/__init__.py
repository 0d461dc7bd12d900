"""Distribution of the dependencies of workloads (propagateDeps)."""
