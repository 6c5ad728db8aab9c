"""One module a command: parse, call, render."""
