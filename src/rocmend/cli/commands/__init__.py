"""One command a module, named as the command; ``wheel_inspect`` is ``rocmend wheel inspect``."""
