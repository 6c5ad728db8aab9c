"""Kernels for NVIDIA's Hopper, written in Gluon and PTX."""
