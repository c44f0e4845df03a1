"""Block I/O classes: adjustments at creation, cgroup files while containers run.

`setter` adds the class of a new container, which the runtime applies. `files` is the
applier that keeps the files of running containers as configured: its `writer` writes
``io.max``, ``io.weight`` and the like, in a thread, by
`nri_resmgr.host.cgroups.writes`; `record` keeps them for the next start. `host` is the
state that they share.
"""
