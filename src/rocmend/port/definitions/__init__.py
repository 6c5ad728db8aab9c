"""What a project's builds define for the compiler on ROCm: read, never executed."""
