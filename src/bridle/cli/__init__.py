"""The command line. `main` is what the console script and `python -m bridle` call."""

from bridle.cli.main import main

__all__ = ["main"]
