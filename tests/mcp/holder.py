"""A process that holds a source with one server, and waits to be killed: `holder.py FOLDER`."""

import asyncio
import sys

from mcp_rig import context_of, look, named, raw, source_of


async def main(folder):
    source = source_of(folder, raw("fine", folder))
    await look(source, folder, action="tools", server="fine")
    await named(source, "mcp__fine__spawn").execute({}, context_of(folder))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
