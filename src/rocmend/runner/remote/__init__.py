"""Executors that run attempts in containers, on other hosts and in clusters."""
