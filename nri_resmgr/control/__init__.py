"""The daemon's own interface: HTTP with JSON over a unix socket, and who asks there."""
