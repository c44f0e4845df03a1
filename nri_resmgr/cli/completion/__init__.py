"""``nri-resmgr completion``: the command line completed by shells.

`command` prints a script for a shell. `words` finds commands, flags and their values in
the parsers; `bash` and `zsh` write them in the language of each shell. So a script fits
the version that printed it, and needs neither Python nor a daemon while one types.
The package installs both scripts, which ``make docs`` writes to ``deploy/completion``.

A generator such as shtab would be one more dependency of nodes, for two short modules.
"""
