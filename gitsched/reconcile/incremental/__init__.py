"""Plan a commit from the state of the last run."""
