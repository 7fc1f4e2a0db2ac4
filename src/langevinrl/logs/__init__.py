"""Console progress, experiment trackers and episode statistics."""
