"""What runs beside requests: periods, reconcilers, repairs, hotplug."""
