"""Block I/O classes: adjustments at creation, cgroup files while containers run."""
