"""``nri-resmgr enable-runtime``: discovery of the runtime, its files, the command."""
