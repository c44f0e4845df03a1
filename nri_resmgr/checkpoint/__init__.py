"""Checkpoints of a policy's state: written while the daemon runs, restored at a start.

* `writer` observes decisions, and decides when the file is written. `encode` makes its
  text, a line per record.
* `restore` reads the file at the start, and sets an invalid one aside. `decode` checks
  the text and makes a state of it.

What a policy's records are, its kind says (`nri_resmgr.policies`). The file is in the
state directory (`nri_resmgr.host.state_dir`). `nri_resmgr.recordings` and
`nri_resmgr.scenario` use the text of checkpoints as well.
"""
