"""Settings of the host: CPU classes, Speed Select, interrupts, isolated containers.

`wanted` is what the policy in force wants. `facts` reads what the host has, `plan`
computes the contents of files from both (with `nri_resmgr.classes.cpu`, `irq` and
`isolation`), `writer` writes them through `nri_resmgr.host` and restores the original
values, `report` logs and counts. `settings` puts these together: it is the applier for
`nri_resmgr.app.background.reconciler`.
"""
