"""A 16-CPU, 5-node machine under software emulation, and the tests inside it."""
