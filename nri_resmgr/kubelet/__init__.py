"""The kubelet's services on this node: gRPC over unix sockets, as client and server.

``proto`` has the messages, by the published numbers of their fields and with no more
fields than are used; ``_gen`` is made of it. The transport is grpclib
(docs/adr/0010-kubelet-services.md), which is the extra ``[kubelet]`` and is imported
after the daemon has registered with the runtime.
"""
