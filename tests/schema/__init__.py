"""Schemas of documents, held against the readers whose notes they are."""
