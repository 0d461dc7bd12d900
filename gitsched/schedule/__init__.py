"""The one scheduler: filter, score, select and assign over a columnar fleet, independent of policy APIs and of the clock."""
