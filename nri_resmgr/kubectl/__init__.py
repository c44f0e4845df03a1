"""``kubectl nri-resmgr``: queries daemons of a cluster by ``kubectl exec``.

It is a client for people, with the rights of their kubeconfig: it finds the node of a
pod and the daemon's pod there, and runs ``nri-resmgr status`` and the like in it. Read
`main` first, then `daemons`. `gather` makes a support bundle, of `pieces` that `redact`
takes secrets out of.

Nothing of this project but this package is needed where it runs, and no library beside
Python's own: `deploy/kubectl/build.py` makes one file of it. So its values are
dataclasses, and its errors have a tree of their own.
"""
