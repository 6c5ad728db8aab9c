"""Code that several ops share."""
