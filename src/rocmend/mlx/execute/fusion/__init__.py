"""Chains of element-wise operations, computed by one generated kernel."""
