"""What a session adds up to, as its log tells it, without taking the log: from its checkpoint on.

Another process may be writing it. What the records mean is not known here.
"""

import os
from collections.abc import Callable

from bridle.errors import UnknownSession
from bridle.promises.store import Record
from bridle.stores.disk import Disk
from bridle.stores.failure import typed
from bridle.stores.loading import Loading
from bridle.stores.placing import opened
from bridle.stores.reading import SessionFolder


def tell(folder: SessionFolder, session_id: str, apply: Callable[[Record], None]) -> int:
    """Feed `apply` the records that tell all of it; the number of the newest.

    That is every record but what streamed, or the newest `Checkpoint` and those after it. Raise
    `UnknownSession`, `StoreFailed`.
    """
    try:
        handle = opened(folder.path(session_id))
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except OSError as error:
        raise typed(session_id, error, "read") from error
    try:
        loading = Loading(Disk(), handle)
        for batch in loading.records():
            for record in batch:
                apply(record)
        return loading.chain.top
    except OSError as error:
        raise typed(session_id, error, "read") from error
    finally:
        os.close(handle)
