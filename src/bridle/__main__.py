"""`python -m bridle` is `bridle`."""

import sys

from bridle.cli import main

if __name__ == "__main__":
    sys.exit(main())
