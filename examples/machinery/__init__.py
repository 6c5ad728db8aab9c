"""Turns a machine's short description into a capture folder in the formats that Linux and ROCm really use."""
