"""Documents of the configuration: which one is accepted, and its status."""
