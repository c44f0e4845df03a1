"""Settings of the host that follow the policy: CPU classes, interrupts, Speed Select."""
