"""Errors of the operating system as errors of a store, with a hint what to do about each."""

import errno

from bridle.errors import StoreFailed

_KEPT = "What could not be stored was not acknowledged."
_HINTS = {
    errno.ENOSPC: "Free some space; the session then continues where it is.",
    errno.EDQUOT: "Free some space; the session then continues where it is.",
    errno.EFBIG: "Raise the limit on the size of files; the session then continues where it is.",
    errno.EIO: "Check the disk; the session continues once it can be written.",
    errno.EROFS: "Make the file system writable, or use another state folder.",
    errno.EACCES: "Check the permissions of the state folder.",
    errno.EPERM: "Check the permissions of the state folder.",
    errno.ELOOP: "A log or its folder was replaced by a symbolic link: put the real one back.",
    errno.ENOENT: "Start a new session; a deleted one can only be restored from a copy.",
    errno.ESTALE: "The file that is there now was not changed: put the log back, or resume it.",
    errno.EBADMSG: "`bridle sessions verify` says what is wrong; bring in a copy with `import`.",
    errno.EEXIST: "Resume that session, or start one with another id.",
}
_DEFAULT_HINT = "Check the disk and the permissions of the folder."


class NewerFormat(OSError):
    """The log was written by a newer version."""


def to_store_failed(session_id: str, error: OSError, action: str = "written") -> StoreFailed:
    """Convert a system error. `action` completes "the log of session … cannot be …"."""
    if isinstance(error, NewerFormat):
        hint = "Use a bridle that is at least as new; nothing was changed."
    elif action == "read":
        hint = f"Nothing was changed. {_HINTS.get(error.errno or 0, _DEFAULT_HINT)}"
    else:
        hint = f"{_KEPT} {_HINTS.get(error.errno or 0, _DEFAULT_HINT)}"
    message = f"the log of session {session_id} cannot be {action}: {error.strerror or error}"
    return StoreFailed(message, error, hint=hint)
