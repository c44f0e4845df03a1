"""A real Kubernetes API server for tests, and what it makes of our objects.

`control_plane` starts it with its etcd, `programs` finds or builds both, and `conftest`
has the fixtures.
"""
