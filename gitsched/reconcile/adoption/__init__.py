"""Take over a running fleet."""
