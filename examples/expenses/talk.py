"""Send messages to the assistant: python talk.py USER MESSAGE [MESSAGE …]"""

import asyncio
import sys

from expenses.app import app


async def main(user: str, *messages: str) -> None:
    async with app() as chat:
        place = None
        for message in messages:
            reply = await chat.service.reply(user, message, place)
            place = reply.conversation_id
            print(reply.response)


asyncio.run(main(*sys.argv[1:]))
