"""Open Cluster Management: managed clusters and their sets, Placements, decisions, rollouts."""
