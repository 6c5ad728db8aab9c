"""llama.cpp's llama-bench: its builds, back ends, options and output, and whether a build computes what it should."""
