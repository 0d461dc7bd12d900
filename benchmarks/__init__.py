"""How long a reconcile takes, stage by stage, beside what git and PyYAML need for the same input: `python -m benchmarks`."""
