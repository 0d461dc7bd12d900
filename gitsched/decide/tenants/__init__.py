"""What each tenant of a source may do, and what it uses."""
