"""Frozen types that every layer shares and that know nothing above them."""
