"""The command nri-resmgr: what runs, composed of everything below."""
