"""The commits of the output branch: write, publish, read and restore them."""
