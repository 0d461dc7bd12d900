"""Let calls of a run fail or end its process, one after the other, and check what is left and how the next run heals it."""
