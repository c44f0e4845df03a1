"""Checkpoints of a policy's state: state to text, and text to state."""
