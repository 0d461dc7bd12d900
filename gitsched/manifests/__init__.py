"""Parse YAML and JSON files into Kubernetes objects with findings, and validate them against JSON Schemas."""
