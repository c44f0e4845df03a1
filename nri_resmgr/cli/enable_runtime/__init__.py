"""``nri-resmgr enable-runtime``: NRI enabled in a runtime's configuration.

`command` has the flags, shows the changes as a diff, applies or undoes them, and can
restart the runtime. `discovery` finds the runtime of the node by its process, socket or
unit; `files` reads its files, wherever the host's root is mounted, and replaces them
atomically with a backup. What changes in a file is decided in `nri_resmgr.runtimes`,
which does no I/O. docs/enable-runtime.md describes the command.
"""
