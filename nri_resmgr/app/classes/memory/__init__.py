"""Memory classes, NUMA policies and limits of misc resources."""
