"""Resource classes of containers: in replies to the runtime, and on the host.

`setter` has the interface: a `ClassSetter` checks what a container asks for, adds it to
the adjustment or update, and writes the rest before the container starts.
`container_classes` chooses the setters that concern a container; the plugin calls it
with every request. There is one setter for each kind: `memory`, `scheduling` (with
`host_scheduling`), `interrupts`, `isolation`, `environment`, `limits`, `rdt` and
`blockio`. What a class means is computed in `nri_resmgr.classes`. Where pods ask by
annotations, these are keys of `nri_resmgr.app.annotations.keys`, whose values the
setters find in the container's `Preferences`; memory classes alone read theirs by
themselves.

RDT and block I/O classes also follow the configuration while containers run: `rdt` and
`blockio` each have a state shared with the setters (`host`), a `writer`, and an applier
for `nri_resmgr.app.background.reconciler` (`rdt.groups`, `blockio.files`). `members`
lists the containers with their classes, `placed` has the class of one, `problems`
counts and logs failures.
"""
