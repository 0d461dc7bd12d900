"""Bytes of a file → documents with findings: YAML as Kubernetes reads it, then the verdict of a schema."""
