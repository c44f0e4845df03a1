"""Block I/O classes: adjustments at creation, cgroup files while containers run.

`setter` adds the class of a new container; `files` is the applier that keeps the files
of running containers as configured, with `writer` for its threads and `record` for the
next start. `host` is the state that they share.
"""
