"""Reading AMD code objects, fat binaries and wheels; whether they serve a gfx target. No GPU needed, nothing imported."""
