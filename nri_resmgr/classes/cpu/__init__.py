"""CPU classes: frequency, idle states and Speed Select of CPUs under one name.

Import what you need from the modules: most runs have no CPU class at all.
"""
