"""A machine for tests: an imaginary tree, and the promise kept over it."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import join, normpath

from bridle.protocols.machine import Place

ROOT = "/ws"
HOME = "/home/me"
FILES = (
    "README.md", "src/app.py", "src/util.py", "tests/test_a.py", "package.json", "data.csv",
    "conf.yaml", "build/out.o", ".git/HEAD", ".gitignore", "run.sh",
)  # fmt: skip


@dataclass(frozen=True)
class Imagined:
    """Files below the root, links by name, and whether git is tame there."""

    files: tuple[str, ...] = FILES
    links: dict[str, str] = field(default_factory=dict)
    tame: bool = True
    vast: bool = False  # too many files to look at
    programs: tuple[str, ...] = ()  # that the PATH finds in the workspace
    root: str = ROOT
    home: str = HOME

    def place(self, path, cwd, *, read_only=False):
        whole = normpath(join(cwd or self.root, path))
        whole = "/" + whole.lstrip("/")
        for name, target in self.links.items():
            link = f"{self.root}/{name}"
            if whole == link or whole.startswith(link + "/"):
                whole = normpath(target + whole[len(link) :])
        if whole == "/dev/null" or whole.startswith("/tmp/own/"):
            return Place(whole, False, temporary=True)
        inside = whole == self.root or whole.startswith(self.root + "/")
        if not inside:
            secret = whole.startswith((f"{HOME}/.ssh", f"{HOME}/.aws", f"{HOME}/.netrc"))
            return Place(whole, False, "deny" if secret else "", "deny" if secret else "",
                         "it holds credentials" if secret else "")  # fmt: skip
        short = whole[len(self.root) + 1 :] or "."
        return Place(short, True, *_care(short.lower()))

    def expand(self, pattern, cwd):
        below = normpath(join(cwd or self.root, pattern))
        if not below.startswith(self.root + "/"):
            return None
        wanted = below[len(self.root) + 1 :].split("/")
        found = set()
        for file in self.files:
            parts = file.split("/")[: len(wanted)]
            if len(parts) == len(wanted) and all(map(_fits, parts, wanted)):
                found.add("/".join(parts))
        base = normpath(cwd)[len(self.root) + 1 :]
        cut = len(base) + 1 if base and not pattern.startswith("/") else 0
        return tuple(sorted(name[cut:] for name in found))

    def sensitive_files(self, folder, cwd):
        if self.vast:
            return None
        top = normpath(join(cwd or self.root, folder)) + "/"
        whole = [f"{self.root}/{name}" for name in (*self.files, *self.links)]
        below = [path[len(top) :] for path in whole if path.startswith(top)]
        return tuple(n for n in below if _care(n.lower())[0] or f"{top}{n}"[4:] in self.links)

    def is_repository_safe(self, cwd):
        return self.tame

    def is_local_program(self, name):
        return name in self.programs


def _fits(name, pattern):
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def _care(path):
    name = path.rpartition("/")[2]
    if path.startswith((".git/hooks", ".git/config", ".bridle")):
        return "", "deny", "it runs code by itself"
    if name == ".env" or name.startswith("id_rsa") or name.endswith((".pem", ".key")):
        return "ask", "ask", "it holds credentials"
    if path.startswith(".github/workflows") or name in (".gitattributes", ".envrc"):
        return "", "ask", "it runs code by itself"
    return "", "", ""
