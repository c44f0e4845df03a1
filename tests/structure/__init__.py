"""``make structure``: how large the code is, and how much of it one request crosses.

The table in docs/architecture.md is a measurement, so no test compares it: it is as of
the last time that the command was run.
"""
