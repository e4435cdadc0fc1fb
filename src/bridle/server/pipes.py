"""Standard input and output as the pipes of a protocol, taken away from everybody else.

What prints, here or in a program that was started from here, prints to standard error from then
on, and whoever reads finds the end of the input.
"""

import os
from typing import BinaryIO


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output, for us alone from now on."""
    lines, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # they stay open as long as the process: a thread may still stand in one of them
    return os.fdopen(lines, "rb", closefd=False), os.fdopen(out, "wb", closefd=False)
