"""LangevinRL."""
