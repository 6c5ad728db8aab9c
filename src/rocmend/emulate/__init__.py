"""Executes AMD machine code on the CPU, and checks what hardware does not: bounds, races, waits, unwritten values."""
