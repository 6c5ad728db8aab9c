"""One module a target; each defines ``TARGET``."""
