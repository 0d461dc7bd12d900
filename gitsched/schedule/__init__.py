"""The one scheduler: filter, score, select, assign over a fleet held as columns. Knows no API and no clock."""
