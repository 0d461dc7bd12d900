"""Providers of live values: a name becomes a value, or why not. The only code that talks to anything but Git."""
