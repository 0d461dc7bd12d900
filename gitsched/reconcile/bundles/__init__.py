"""Build the directories of Bundles for the clusters that get them."""
