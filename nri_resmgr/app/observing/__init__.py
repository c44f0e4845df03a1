"""Observation of decisions and sessions: decision log, history, traces."""
