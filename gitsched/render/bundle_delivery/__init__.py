"""Objects with which Flux or Argo CD builds a bundle for one cluster from the source repository."""
