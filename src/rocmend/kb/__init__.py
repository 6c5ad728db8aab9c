"""Knowledge entries, their loader and the predicates that match them against a machine."""
