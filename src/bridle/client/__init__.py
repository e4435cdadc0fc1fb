"""The same session verbs over HTTP, so that a program or a face works on a session elsewhere.

async with bridle.client.Client("http://127.0.0.1:8420", token=…) as client:
    session = await client.session(workspace="…")
    turn = await session.send("fix the failing test")
    print((await session.wait(turn)).text)
"""

from bridle.client.desk import Client as Client
from bridle.client.session import RemoteSession as RemoteSession
from bridle.protocols.session_values import ApprovalRequest as ApprovalRequest
from bridle.protocols.session_values import Choice as Choice
from bridle.protocols.session_values import SearchHit as SearchHit
from bridle.protocols.session_values import SessionDetail as SessionDetail
from bridle.protocols.session_values import SessionInfo as SessionInfo
from bridle.protocols.session_values import SessionPage as SessionPage
from bridle.protocols.session_values import UndoPreview as UndoPreview
