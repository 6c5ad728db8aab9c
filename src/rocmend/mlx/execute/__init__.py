"""The executors: an interpreter of torch calls, cached plans, and captured graphs."""
