"""What is built around ``rocmend.mlx.core``: the check of its surface, and programs that measure with it."""

SHAPES = ("llama-3.1-8b", "qwen3-0.6b", "qwen3-30b-a3b", "tiny")
"""The built-in shapes of ``speed``, which cannot be imported without ``mlx.core``."""
