"""The same session verbs over HTTP, so that a program or a face works on a session elsewhere.

async with bridle.client.Client("http://127.0.0.1:8420", token=…) as client:
    session = await client.session(workspace="…")
    turn = await session.send("fix the failing test")
    print((await session.wait(turn)).text)
"""

from bridle.client.desk import Client as Client
from bridle.client.session import RemoteSession as RemoteSession
from bridle.client.values import Choice as Choice
from bridle.client.values import Found as Found
from bridle.client.values import SessionLine as SessionLine
from bridle.client.values import SessionWhole as SessionWhole
from bridle.client.values import Undoing as Undoing
from bridle.client.values import Waiting as Waiting
