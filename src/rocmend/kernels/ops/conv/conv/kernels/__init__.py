"""The Triton kernels of convolution."""
