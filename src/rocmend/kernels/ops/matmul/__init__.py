"""Matrix products and their quantized weights."""
