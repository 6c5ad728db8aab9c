"""Run the suites of all ops on the GPUs at hand, in as little time as the machine allows."""
