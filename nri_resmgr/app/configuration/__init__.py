"""The configuration in force: documents accepted or rejected, and their status.

`acceptance` puts a document in force as a whole or rejects it; `trials` reports what
one would change; `status` has documents and the status as values. `nri_resmgr.config`
reads the text of a document, `nri_resmgr.daemon.configuration` follows the file, the
cache and the runtime.
"""
