"""The kernels that ``quantized_attention`` has on Hopper."""
