"""Karmada: its kinds, their rules, how they become requests, and how decisions become its resources."""
