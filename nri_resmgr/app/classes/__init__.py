"""Resource classes of containers, put into adjustments and kept on the host."""
