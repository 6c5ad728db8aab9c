"""What the emulator finds, and how fast it is."""
