"""One module a topic; each has ``benches()``."""
