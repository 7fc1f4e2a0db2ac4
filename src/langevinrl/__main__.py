"""`python -m langevinrl` is the command line."""

from __future__ import annotations

import os
import sys

from langevinrl.cli import main

if __name__ == "__main__":
    # `python -m` lets modules be found in the current folder before all others, which may be a run
    # that someone sent; the command line looks there last, and only for what its user names.
    if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
        del sys.path[0]
    main()
