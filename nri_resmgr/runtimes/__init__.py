"""Configurations of container runtimes: what they say, and how to change that."""
