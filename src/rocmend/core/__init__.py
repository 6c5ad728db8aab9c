"""Records, errors, units and the gfx-target table; imports nothing of ours."""
