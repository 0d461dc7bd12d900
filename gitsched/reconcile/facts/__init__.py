"""What machines observe: facts branches, metric values and statuses."""
