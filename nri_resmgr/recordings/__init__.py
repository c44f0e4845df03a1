"""Recordings of a node: written by ``run --record``, read by ``replay``."""
