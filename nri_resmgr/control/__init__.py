"""The control interface of the daemon: HTTP with JSON over a unix socket.

`listener` makes the socket, `http` and `http_request` are the server, `routes` has the
paths. `state`, `explain`, `events` and `host` make the answers from a `DaemonView`;
`schema.json` describes them. `client` queries a daemon.
"""
