"""Keep copies of workloads until their replacement is there, and directories of clusters that are gone."""
