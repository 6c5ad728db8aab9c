"""The Triton kernels."""
