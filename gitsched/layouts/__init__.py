"""Recognize how a repository is laid out (kustomize overlays, Helm charts, Flux, Argo CD), and propose bundles for it. Pure."""
