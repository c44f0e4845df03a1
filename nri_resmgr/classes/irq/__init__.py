"""Interrupts: which CPUs take them, by what containers and balloons ask for.

Pure: interrupts and requests in, a set of CPUs per interrupt out.
"""
