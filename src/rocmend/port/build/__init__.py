"""Builds, dependencies, containers and settings."""
