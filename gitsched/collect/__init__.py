"""Observe clusters through kubectl: versions, APIs, resources and readiness, from contexts, hubs and Argo CD."""
