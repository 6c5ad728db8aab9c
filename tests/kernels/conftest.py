"""Kernels are checked in Triton's interpreter: it must be asked for before any kernel is defined."""

import os

os.environ["TRITON_INTERPRET"] = "1"
