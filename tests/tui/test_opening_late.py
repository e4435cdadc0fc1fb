"""Modules that are read only once somebody asks for something of them."""

import subprocess
import sys

BEGUN = "import sys\nfrom bridle.tui import late\n"
PICTURE = BEGUN + "from bridle.tui.lean import import_textual\nassert import_textual()\n"
LATE = """
sys.path.insert(0, sys.argv[1])
late.NAMES["late_one"] = ""
with late.unread():
    import late_one
"""


def said(program, *words):
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_encrypts_is_not_read_for_the_first_picture_and_then_it_is():
    program = """
print("_ssl" in sys.modules)
late.read_all()
import ssl
print("_ssl" in sys.modules, late.is_unread("ssl"), "__getattr__" in vars(ssl))
"""
    assert said(PICTURE + program) == ["False", "True", "False", "False"]


def test_whoever_asks_for_something_gets_it_and_everybody_has_the_same_module():
    program = """
import asyncio, asyncio.base_events as events, ssl
assert late.is_unread("ssl") and late.is_unread("asyncio.sslproto")
from ssl import SSLContext
print(events.ssl is ssl, events.ssl.SSLContext is SSLContext, late.is_unread("ssl"))
print(events.sslproto is asyncio.sslproto, asyncio.sslproto.SSLProtocol.__module__)
"""
    assert said(PICTURE + program) == ["True", "True", "False", "True", "asyncio.sslproto"]


def test_a_connection_can_be_encrypted_although_nobody_read_what_encrypts_before():
    """The other side does not know how: that it is told so shows that ours does."""
    program = """
import asyncio

async def main():
    async def greet(reader, writer):
        writer.write(b"no such thing here\\r\\n" * 3)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1")
    async with server:
        place = server.sockets[0].getsockname()
        try:
            import ssl
            await asyncio.open_connection(*place, ssl=ssl.create_default_context())
        except ssl.SSLError as error:
            print(type(error).__name__)

asyncio.run(main())
"""
    assert said(PICTURE + program) == ["SSLError"]


def test_two_threads_that_ask_at_once_both_get_the_whole_module(tmp_path):
    tmp_path.joinpath("late_one.py").write_text(
        "import __main__\nfor _ in range(4): __main__.asking.acquire()\nLAST = 7\n"
    )
    program = """
import threading
found, asking = [], threading.Semaphore(0)

def ask():
    asking.release()
    found.append(late_one.LAST)

threads = [threading.Thread(target=ask) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
print(*found)
"""
    assert said(BEGUN + LATE + program, tmp_path) == ["7"] * 4


def test_a_module_that_could_not_be_read_says_so_and_is_read_the_next_time(tmp_path):
    tmp_path.joinpath("late_one.py").write_text(
        "import sys\nif not hasattr(sys, 'calm'): raise OSError('not now')\nLAST = 7\n"
    )
    program = """
try:
    late_one.LAST
except OSError as error:
    print(error)
sys.calm = True
print(late_one.LAST, hasattr(late_one, "nothing"))
"""
    assert said(BEGUN + LATE + program, tmp_path) == ["not", "now", "7", "False"]


def test_a_python_without_the_part_in_c_fails_at_the_import_as_ever(tmp_path):
    tmp_path.joinpath("half.py").write_text("import _no_such_part\n")
    program = """
sys.path.insert(0, sys.argv[1])
late.NAMES["half"] = "_no_such_part"
try:
    with late.unread():
        import half
except ImportError as error:
    print(error.name)
print(any(getattr(one, "__module__", "") == late.__name__ for one in sys.meta_path))
"""
    assert said(BEGUN + program, tmp_path) == ["_no_such_part", "False"]
