"""Read and patch objects of a cluster with the kubectl executable, which knows how to authenticate."""
