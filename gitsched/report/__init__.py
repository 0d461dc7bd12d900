"""Two plans become a report of what changed. Pure: values in, text out."""
