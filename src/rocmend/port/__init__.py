"""Porting CUDA projects to ROCm, with the NVIDIA path provably unchanged."""
