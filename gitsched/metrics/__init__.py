"""Clients of metrics providers and of forges' commit statuses: the only code that opens connections to hosts other than Git servers."""
