"""The plugin as a daemon: everything below composed into one process that serves."""
