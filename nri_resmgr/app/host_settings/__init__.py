"""Settings of the host: CPU classes, interrupts and Speed Select of the policy."""
