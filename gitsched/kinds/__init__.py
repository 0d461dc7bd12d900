"""Facts about the kinds of common operators: scope, references, replicas, health. One data module for each group of kinds."""
