"""Recordings of a node: what the daemon writes with --record and replay reads."""
