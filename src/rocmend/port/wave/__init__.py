"""Whether warp-level code is right on wave32 and on wave64."""
