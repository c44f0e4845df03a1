"""The configuration in force: documents accepted or rejected, and their policies.

`acceptance` puts a document in force as a whole or rejects it; `trials` reports what
one would change; `status` has documents and the status as values, `cluster` that of
the cluster's documents. `build` makes the policy that a document selects
(`nri_resmgr.policies` has the kinds). `fitting` leaves out what does not fit a changed
machine, `host_fit` checks what the host supports of classes and host settings.
`nri_resmgr.config` reads the text of a document, `nri_resmgr.daemon.configuration`
follows the file, the cache and the runtime.
"""
