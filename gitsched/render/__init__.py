"""Decisions become files of the output branch. Pure: values in, planned files out."""
