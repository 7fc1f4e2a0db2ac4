"""Files of a run: folder layout, checkpoints, locks and trust."""
