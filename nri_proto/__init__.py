"""The NRI wire without I/O: ttRPC, the connection multiplexer, the messages."""
