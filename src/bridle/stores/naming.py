"""What the id of a session looks like: it is the name of a folder, and nothing else."""

import re

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
