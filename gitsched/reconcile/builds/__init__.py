"""Build what a source only describes: kustomize roots, Helm charts, and directories that delivery tools reconcile."""
