"""Kernels that tests reach are computed in Triton's interpreter, asked for before triton is imported."""

import os

os.environ["TRITON_INTERPRET"] = "1"
