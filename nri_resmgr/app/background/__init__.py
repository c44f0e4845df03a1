"""Tasks beside requests: periodic polls, reconcilers, repairs, hotplug."""
