"""Metrics: the table of all, counters, and series computed on request."""
