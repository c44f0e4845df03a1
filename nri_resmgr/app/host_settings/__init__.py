"""Settings of the host: CPU classes, interrupts and Speed Select as the policy wants."""
