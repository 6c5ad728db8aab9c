"""CUDA C++ sources: tokens, calls, names and gates."""
