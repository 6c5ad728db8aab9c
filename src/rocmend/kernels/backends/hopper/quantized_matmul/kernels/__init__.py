"""The kernels that ``quantized_matmul`` has on Hopper."""
