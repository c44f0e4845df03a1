"""Observers of decisions: the protocol, and their dispatch after the reply."""
