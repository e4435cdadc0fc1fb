"""The sessions of a server over HTTP, with the same methods as those of this process.

async with bridle.client.Client("http://127.0.0.1:8420", token=…) as client:
    session = await client.session(workspace="…")
    turn = await session.send("fix the failing test")
    print((await session.wait(turn)).text)
"""

from bridle.client.client import Client as Client
from bridle.protocols.session_values import ApprovalAnswer as ApprovalAnswer
from bridle.protocols.session_values import ApprovalRequest as ApprovalRequest
from bridle.protocols.session_values import Choice as Choice
from bridle.protocols.session_values import SearchHit as SearchHit
from bridle.protocols.session_values import SessionDetail as SessionDetail
from bridle.protocols.session_values import SessionInfo as SessionInfo
from bridle.protocols.session_values import SessionPage as SessionPage
from bridle.protocols.session_values import UndoPreview as UndoPreview
from bridle.runtime.followed_session import FollowedSession as FollowedSession
