"""The instruction tables: what each instruction computes, and the functions in C that are made of them."""
