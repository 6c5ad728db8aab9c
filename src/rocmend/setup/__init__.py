"""What to set and what to install for a machine and a workload."""
