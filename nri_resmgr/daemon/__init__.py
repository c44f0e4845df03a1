"""The daemon, `nri-resmgr run`: builds the policy, connects it, and runs services.

Read `run` first: it reads the input (`state`, `documents`, `memory_kinds`), has the
policy built (`build`), serves the runtime, and runs the `services` beside it: control
socket, metrics and health (`insight`), traces, systemd, reconcilers (`targets`),
verification. `parts` has the objects that they share.
"""
