"""One file for each suite that runs in torch; see ``rocmend.bench.workload``."""
