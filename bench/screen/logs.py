"""One session of so many records, as the engine would have left it, with words at its very end.

python -m bench.screen.logs STATE WORKSPACE RECORDS LAST
"""

import asyncio
import json
import sys
import tempfile
from itertools import cycle
from pathlib import Path

from msgspec.structs import replace

from bench.sessions.logs import Scribe
from bench.sessions.story import tell
from bridle.events import MessageAdded, PromptReceived, SessionStarted, TurnEnded
from bridle.messages import user
from bridle.protocols.codec import encode_data

STORY = 3_000_000  # bytes
NAME = "20260101-000000-long"


def main() -> None:
    """Write it, and say where it is and how large."""
    state, workspace, count, last = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=Path(state).parent) as scratch:
        records = asyncio.run(tell(Path(scratch), STORY))
    said = [(one.event, encode_data(one.event), one.seq) for one in records]
    first = records[0].event
    assert isinstance(first, SessionStarted)
    here = replace(first, session_id=NAME, workspace=str(Path(workspace).resolve()))
    scribe = Scribe(Path(state) / "sessions" / NAME, folds=True)
    scribe.say((here, encode_data(here), 0))
    for one in cycle(said[1:]):
        scribe.say(one)
        if scribe.count >= int(count) - 3 and isinstance(one[0], TurnEnded):
            break
    turn = PromptReceived(last, 1), MessageAdded(user(last), -1, 1), TurnEnded(1, "done")
    for event, number in zip(turn, (-1, 0, 0), strict=True):
        scribe.say((event, encode_data(event), number))
    scribe.close()
    print(json.dumps({"records": scribe.count, "bytes": scribe.size, "built_s": 0.0}))


if __name__ == "__main__":
    main()
