"""A workspace in bad company: links, pipes and names of every bad kind, and canaries around it."""

import os
import socket
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

from bridle.errors import ToolError
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace

CANARY = b"the canary outside"
KEPT = b"what stands here stays"

LINKS = {
    "out": "../ws-evil",
    "outfile": "../ws-evil/secret",
    "absout": "{base}/ws-evil",
    "absfile": "{base}/ws-evil/secret",
    "chain": "chain2",
    "chain2": "./chain3",
    "chain3": "src/../chain4",
    "chain4": "{base}/ws/chain5",
    "chain5": "../ws-evil",
    "up": "..",
    "upup": "../..",
    "srcup": "src/../../ws-evil",
    "dotdot": "src/../..",
    "top": "/",
    "twin": "{base}/ws-evil",
    "procroot": "/proc/self/root",
    "proccwd": "/proc/self/cwd",
    "procfd": "/proc/self/fd",
    "devzero": "/dev/zero",
    "devtty": "/dev/tty",
    "dangling": "../ws-evil/new",
    "danglingdeep": "../ws-evil/new/deep",
    "gone": "nowhere/../../ws-evil/secret",
    "loop": "loop",
    "ping": "pong",
    "pong": "ping",
    "grow": "grow/x",
    "src/out": "../../ws-evil",
    "src/up": "../..",
    "git": ".git",
    "hooks": ".git/hooks",
    "newhook": ".git/hooks/post-commit",
    "gitconfig": ".git/config",
    "own": ".bridle",
    "env": ".env",
    "src/git": "../.git",
    "key": "../home/.ssh/id_rsa",
    "shadow": "/etc/shadow",
    "environ": "/proc/self/environ",
}


class Field:
    """The workspace `ws`, a folder `ws-evil` beside it, a home, and what must not change."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "ws"
        for path, data in {
            "ws/src/a.py": b"print(1)\n",
            "ws/.git/HEAD": b"ref: refs/heads/main\n",
            "ws/.git/config": KEPT,
            "ws/.git/hooks/pre-commit": KEPT,
            "ws/.git/objects/x": b"x",
            "ws/sub/.git/config": KEPT,
            "ws/bare/HEAD": b"ref: refs/heads/main\n",
            "ws/bare/objects/x": b"x",
            "ws/bare/config": b"[core]\n\tbare = true\n",
            "ws/.bridle/policy.yaml": KEPT,
            "ws/.env": CANARY,
            "ws-evil/secret": CANARY,
            "home/.ssh/id_rsa": CANARY,
            "home/.config/bridle/policy.yaml": KEPT,
        }.items():
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_bytes(data)
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target.format(base=base))
        os.link(base / "ws-evil/secret", self.root / "hard")
        os.link(base / "home/.ssh/id_rsa", self.root / "hardkey")
        os.mkfifo(self.root / "pipe")
        self.files = Workspace(self.root)
        self.machine = LocalMachine(
            self.files,
            home=str(base / "home"),
            own=[base / "home/.config/bridle"],
            temporary=lambda: str(base / "tmp"),
        )

    @contextmanager
    def odd_files(self):
        """A socket, and a device where the system lets us make one."""
        here = Path.cwd()
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(self.root)  # a socket's path may only be short
            try:
                listener.bind("socket")
            finally:
                os.chdir(here)
            with suppress(PermissionError):
                os.mknod(self.root / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
            yield

    def kept(self):
        """Everything that must not change: names, kinds, contents."""
        places = ["ws-evil", "home", "ws/.git", "ws/sub/.git", "ws/.bridle"]
        found = {}
        for place in places:
            for path in sorted([self.base / place, *(self.base / place).rglob("*")]):
                data = path.read_bytes() if path.is_file() else None
                found[str(path.relative_to(self.base))] = (path.lstat().st_mode, data)
        return found

    def attack(self, path):
        """Every verb on a path. Returns what was read, and which verbs were refused."""
        files, seen, refused = self.files, [], []
        verbs = {
            "read": lambda: files.read(path),
            "part": lambda: files.read(path, 10),
            "names": lambda: files.names(path),
            "exists": lambda: files.exists(path),
            "is_folder": lambda: files.is_folder(path),
            "resolve": lambda: files.resolve(path),
            "write": lambda: files.write(path, b"overwritten"),
            "below": lambda: files.write(f"{path}/planted", b"planted"),
            "rename": lambda: files.rename(path, "taken"),
            "onto": lambda: files.rename("src/a.py", path),
            "remove": lambda: files.remove(path),
            "remove below": lambda: files.remove(f"{path}/secret"),
        }
        for name, verb in verbs.items():
            try:
                seen.append(verb())
            except ToolError:
                refused.append(name)
        return seen, refused
