"""What is known of packages, for ports."""
