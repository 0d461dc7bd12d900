"""What the place that hosts a repository tells us, by webhook, and what we tell it, by commit status."""
