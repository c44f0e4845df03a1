"""What would happen: machines, documents and events from files, really decided."""
