"""Real machines for tests: Debian packages, containerd, pods; no mocks."""
