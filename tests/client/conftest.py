"""The server's rig is the client's, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "server"))
