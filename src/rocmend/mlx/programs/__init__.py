"""What is built around ``rocmend.mlx.core``: the check of its surface, and programs that measure with it."""
