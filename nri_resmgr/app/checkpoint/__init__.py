"""Checkpoints of a policy's state: state to text, and text to state.

`write` makes the text, a line per record, and `read` checks it and makes a state of
it. No file is opened here: `nri_resmgr.daemon.checkpoint_writer` decides when the file
is written, and `nri_resmgr.daemon.checkpoint_restore` reads it at the start. What a
policy's records are, its kind says (`nri_resmgr.policies`).
"""
