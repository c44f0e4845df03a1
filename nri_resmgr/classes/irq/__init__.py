"""Interrupts: the CPUs that take them, as containers and balloon types ask for.

`requests` are what they ask for, `interrupts` those of a machine. `placement` computes
a set of CPUs for each interrupt, and the files for it; `irqbalance` the bans that keep
an irqbalance from undoing it.
"""
