"""What a ported project is given: modules and headers that its rewrites use."""
