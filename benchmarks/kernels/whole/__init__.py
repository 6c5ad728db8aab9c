"""Everything that the page of the documentation needs, measured in one call."""
