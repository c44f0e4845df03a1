"""Recordings of a node: written by ``run --record``, read by ``replay``.

`recorder` observes a daemon and writes with `file`, after `secrets` has removed what
may be secret. `entries` are the values of a recording, `text` writes and loads them as
lines of JSON. `nri_resmgr.scenario.replay` repeats them.
"""
