"""Checkpoints of a policy's state: text out, state in."""
