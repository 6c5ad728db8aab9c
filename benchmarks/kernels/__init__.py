"""How fast the kernels are: beside their peers and the ceilings of the machine, never behind a red gate."""
