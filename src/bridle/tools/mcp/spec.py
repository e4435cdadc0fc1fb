"""How a server is reached: a program and its words, or an address. A value; starts nothing."""

from urllib.parse import urlsplit

from msgspec import Struct

START = 30.0  # seconds that a server has for its start, when nothing else is said


class Spec(Struct, frozen=True):
    """One server. `problem` says why it cannot be used, where that is known beforehand.

    `identity` stands for what the person wrote: with another command or address it is another
    server, and what was known of the old one says nothing of it. `origin` is where it was written.
    `trusted`: it is the folder's own, and what it runs there was trusted with the folder.
    With `tokens`, a file, a person signs in there, and it holds what they were given for it.
    """

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = START
    identity: str = ""
    origin: str = ""
    problem: str = ""
    tokens: str = ""
    trusted: bool = False

    @property
    def place(self) -> str:
        """What it is, for a person: the program, or the address without what may be secret."""
        if self.command:
            return " ".join(self.command)
        return bare_address(self.url)

    def __repr__(self) -> str:
        return f"<server {self.name}: {self.place}>"  # neither variables nor headers


def bare_address(url: str) -> str:
    """An address without a user's name and without its query: either may hold a token."""
    try:
        found = urlsplit(url)
        port = f":{found.port}" if found.port else ""
    except ValueError:
        return "an address that cannot be read"
    host = found.hostname or ""
    return f"{found.scheme}://{f'[{host}]' if ':' in host else host}{port}{found.path}"
