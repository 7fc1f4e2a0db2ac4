"""`python -m langevinrl` is the command line."""

from __future__ import annotations

from langevinrl.cli import main

if __name__ == "__main__":
    main()
