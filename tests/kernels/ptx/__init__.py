"""Kernels for NVIDIA executed whole on the CPU, from their PTX: stricter than a GPU, which a test machine has not."""
