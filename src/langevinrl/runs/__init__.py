"""One run and its folder: configuration, loop, callbacks, checkpoints."""
