"""Lends our forked programs to somebody who wants a command: a suite, or an editor.

The command is a few lines that hand over their streams, and end as the program does.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

from nursery import Forked
from rig import SOAK

_ASK = """
import json, os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
wanted = {"words": sys.argv[2:], "environ": dict(os.environ), "folder": os.getcwd()}
data = json.dumps(wanted).encode()
socket.send_fds(door, [b"%08d" % len(data)], [0, 1, 2])
door.sendall(data)
for fd in (0, 1, 2):
    os.close(fd)
code = int(door.recv(16) or b"1")
os._exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def lent(folder):
    """What makes a command of a script, or of a module, and its words."""
    if SOAK:
        yield lambda name, *words: [sys.executable, *_named(str(name)), *words]
        return
    place = folder / f"door-{secrets.token_hex(4)}"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(place))
        door.listen()
        thread = threading.Thread(target=_serve, args=(door,))
        thread.start()
        try:
            start = [sys.executable, "-SIc", _ASK, str(place)]
            yield lambda name, *words: [*start, str(name), *words]
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join()


def _named(name):
    return [name] if name.endswith(".py") else ["-m", name]


def _serve(door):
    serving = []
    with suppress(OSError):  # it is shut when nobody asks any more
        while True:
            one = threading.Thread(target=_served, args=(door.accept()[0],))
            one.start()
            serving.append(one)
    for one in serving:
        one.join()


def _served(asking):
    with asking:
        size, fds, _, _ = socket.recv_fds(asking, 8, 3)
        with asking.makefile("rb") as data:
            wanted = json.loads(data.read(int(size)))
        streams = dict(zip(("stdin", "stdout", "stderr"), fds, strict=True))
        where = {"cwd": wanted["folder"], **streams}
        process = Forked(wanted["words"], wanted["environ"], big=True, **where)
        for fd in fds:
            os.close(fd)
        with suppress(OSError):  # it was killed, and wants to know nothing
            asking.sendall(b"%d" % _ended(process, asking))


def _ended(process, asking):
    """Its exit code; when who asked for it is gone, so is the program."""
    asking.setblocking(False)
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(0.2)
        with suppress(BlockingIOError):
            if not asking.recv(1):
                process.kill()
