"""Diagnoses a machine: knowledge entries that match become findings."""
