"""Files of the output branch: manifests, records, metadata, README.md. Pure functions that return planned files."""
