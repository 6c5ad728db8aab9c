"""Inline PTX: read from ``asm`` statements and written as C++ that AMD GPUs run."""
