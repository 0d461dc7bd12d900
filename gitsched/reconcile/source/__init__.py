"""Read the documents of a source commit."""
