"""Node resource manager for Kubernetes, an NRI plugin of containerd and CRI-O."""
