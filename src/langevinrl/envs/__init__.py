"""Environments: where episodes end and action boxes are met."""
