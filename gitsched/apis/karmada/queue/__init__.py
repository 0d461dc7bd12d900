"""Bindings in the order of Karmada's scheduling queue, where what is decided about one counts for the next."""
