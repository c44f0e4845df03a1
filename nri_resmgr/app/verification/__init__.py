"""Verification: what the kernel has in force against what was decided."""
