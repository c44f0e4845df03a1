"""The configuration in force: documents accepted or rejected, and their status."""
