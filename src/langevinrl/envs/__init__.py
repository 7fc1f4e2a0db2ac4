"""Vector environments, their spaces, checks and snapshots."""
