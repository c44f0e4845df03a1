"""The admission webhook: writes the requests of a pod into its annotation.

A process of its own beside a cluster's nodes, for clusters whose nodes have no exact
source of requests. It knows nothing of NRI, hosts or the daemon, and the daemon never
imports it.

Read `review` first: it makes the answer to a review, from bytes to bytes, without I/O.
`pods` has what is read of a pod, and the text of the annotation; `checks` finds the
annotations that nodes would refuse.

Around it: `connection` serves one client by h11, `server` accepts clients over TLS,
`certificate` follows the files of the certificate while clients are served, and
`webhook` is the process. `metrics` has its metrics.

`own_certificates` makes and rotates certificates, as a process apart: the server needs
neither a token nor the API server.
"""
