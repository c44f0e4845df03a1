"""Observers of decisions: their base class, and the dispatch after the reply."""
