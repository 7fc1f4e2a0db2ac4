"""Run folders -> tables and figures.  Reads files only, and never needs JAX."""
