"""rocmend makes machine-learning workloads run, correctly and fast, on the AMD GPU a person has."""

__version__ = "0.1.0"
