"""Building of policies: a configuration and a machine in, a policy out."""
