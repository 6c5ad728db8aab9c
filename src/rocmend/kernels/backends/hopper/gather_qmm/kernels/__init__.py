"""The kernels that ``gather_qmm`` has on Hopper."""
