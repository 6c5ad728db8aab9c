"""The Triton kernels of attention: forward, and the gradients."""
