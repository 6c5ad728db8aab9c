"""Running commands and Python callables as supervised attempts."""
