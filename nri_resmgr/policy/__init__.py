"""Decisions as pure functions: no clock, file, random number or log in here."""
