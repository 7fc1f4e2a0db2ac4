"""Progress line, trackers, episode statistics, sampler diagnosis and video."""
