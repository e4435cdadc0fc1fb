"""What goes wrong with a log, in words that a person can act on."""

import errno

from bridle.errors import StoreFailed

_KEPT = "Nothing was acknowledged that is not stored."
_HINTS = {
    errno.ENOSPC: "Free some space; the session then goes on where it is.",
    errno.EDQUOT: "Free some space; the session then goes on where it is.",
    errno.EFBIG: "Raise the limit on the size of files; the session then goes on where it is.",
    errno.EIO: "Check the disk; the session goes on where it is once it can be written.",
    errno.EROFS: "Make the file system writable, or use another state folder.",
    errno.EACCES: "Check the rights of the state folder.",
    errno.EPERM: "Check the rights of the state folder.",
    errno.ELOOP: "There is a link where a log or its folder should be: put the real one there.",
    errno.ENOENT: "Start a new session; what was deleted can only come from a copy.",
    errno.ESTALE: "What is there now was left alone: put the log back, or take up what is there.",
    errno.EBADMSG: "`bridle sessions verify` says what is wrong; bring in a copy with `import`.",
    errno.EEXIST: "Take that session up again, or start one with another id.",
}
_ELSE = "Check the disk and the folder's rights."


class NewerFormat(OSError):
    """A newer version wrote it."""


def typed(session_id: str, error: OSError, what: str = "written") -> StoreFailed:
    """An error of the system as one of ours."""
    if isinstance(error, NewerFormat):
        hint = "Use a bridle that is at least as new; nothing was changed."
    elif what == "read":
        hint = f"Nothing was changed. {_HINTS.get(error.errno or 0, _ELSE)}"
    else:
        hint = f"{_KEPT} {_HINTS.get(error.errno or 0, _ELSE)}"
    said = f"the log of session {session_id} cannot be {what}: {error.strerror or error}"
    return StoreFailed(said, error, hint=hint)
