"""Written by `make proto`; never edited."""
