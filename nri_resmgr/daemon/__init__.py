"""The daemon, `nri-resmgr run`: builds the policy, connects it, and runs services.

Read `run` first: it reads the input (`state`, `documents`, `memory_kinds`), has the
policy built (`build`), serves the runtime, and runs the `services` beside it: control
socket, metrics and health (`insight`), traces, systemd, reconcilers (`targets`),
verification. `parts` has the `Daemon`, which owns the objects that they share.

* State directory: `state` opens and locks it for this process alone;
  `nri_resmgr.checkpoint` writes the checkpoint after decisions and reads it at the
  start, `configuration_cache` keeps the runtime's document.
* The cluster's documents: `cluster` follows the spool folder that the agent fills.
* Signals: `log_setup` handles SIGUSR1 (debug output), `configuration` SIGHUP (reload),
  `nri_resmgr.stub.serve` SIGTERM and SIGINT (end).
"""
