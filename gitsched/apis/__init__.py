"""The policy APIs: the kinds that each reads, the scheduling requests that it builds, and the records that it writes."""
