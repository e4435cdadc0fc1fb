"""The environment of a child process: a short list of harmless variables, and never a key."""

import os
from collections.abc import Sequence

from bridle.workspace.lookup import folders

INHERITED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
)


def clean_environment(roots: Sequence[str] = ()) -> dict[str, str]:
    """Return the part of our environment that a program may have.

    PATH keeps only absolute folders, and none inside `roots`: whatever a tool call may have
    written there must not be run by its name.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith("LC_")
    }
    if "PATH" in inherited:
        inherited["PATH"] = os.pathsep.join(folders(roots))
    plain_terminal = {
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return {**inherited, **plain_terminal}
