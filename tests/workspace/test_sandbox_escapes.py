"""Commands that really try to get out of the sandbox. Each gets out where there is none."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from cage import LEVELS, USERS, SandboxRig, as_ordinary, lacks

SAY = "print('GOT'+' IN')"
CONNECT = f"import socket; socket.create_connection(('127.0.0.1',{{port}})); {SAY}"
NAMED = f"import socket; socket.socket(socket.AF_UNIX).connect('{{path}}'); {SAY}"
ABSTRACT = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0)+'{{abstract}}'); {SAY}"
LIMIT = f"import resource as r; r.prlimit({{neighbour}}, r.RLIMIT_CORE, (0, 0)); {SAY}"
PIN = f"import os; os.sched_setaffinity({{neighbour}}, os.sched_getaffinity(0)); {SAY}"
# The attacker's own priority: nobody but root may raise one, and the tests may run under nice.
PRIORITY = f"from os import *; setpriority(0, {{neighbour}}, getpriority(0, 0)); {SAY}"
MARK = f"import os; os.setxattr('{{outside}}/a', 'user.bridle', b'x'); {SAY}"
SHARED = f"import ctypes; ctypes.CDLL(None).shmat({{memory}}, 0, 0) != -1 and {SAY}"
TRACE = f"import ctypes; ctypes.CDLL(None).ptrace(0,0,0,0)==0 and {SAY}"
# ways to a file that runs with the rights of its owner; each says so if the bit is there
LOOK = "import os, ctypes; call = ctypes.CDLL(None, use_errno=True).syscall; "
SEEN = f"; os.stat('{{name}}').st_mode & {{bit}} and {SAY}"
MODES = {
    "by its name": "open('{name}','w'); os.chmod('{name}', 0o755|{bit})",
    "by a handle": "os.fchmod(os.open('{name}', os.O_CREAT|os.O_RDWR), 0o755|{bit})",
    "in a folder": "open('{name}','w'); os.chmod('{name}', 0o755|{bit}, dir_fd=os.open('.', 0))",
    "by a newer call": "open('{name}','w'); call(452, -100, b'{name}', 0o755|{bit}, 0)",
    "from its beginning": "os.open('{name}', os.O_CREAT|os.O_RDWR, 0o755|{bit})",
    "as a node": "os.mknod('{name}', 0o100755|{bit})",
    "through a structure": "call(437, -100, b'{name}', "
    "(ctypes.c_uint64*3)(0o102, 0o755|{bit}, 0), ctypes.c_size_t(24))",
}


def modes(bit):
    """Commands that make such a file, by their names."""
    return {
        f"set the bit {bit} {name}": '{python} -c "'
        + (LOOK + words + SEEN).format(name=f"{bit}-{number}", bit=bit)
        + '"'
        for number, (name, words) in enumerate(MODES.items())
    }


ATTACKS = {
    **modes("0o4000"),
    "write a new file outside": "echo x > {outside}/new && echo GOT IN",
    "append to a file outside": "echo x >> {outside}/a && echo GOT IN",
    "empty a file outside": "truncate -s 0 {outside}/b && echo GOT IN",
    "remove a file outside": "rm -f {outside}/c && [ -d {outside} ] && [ ! -e {outside}/c ]"
    " && echo GOT IN",
    "move a file out": "echo x > mine && mv mine {outside}/newer && echo GOT IN",
    "move a file in": "mv {outside}/d . && cat d && echo GOT IN",
    "make a folder outside": "mkdir {outside}/folder && echo GOT IN",
    "write into the home": "echo x >> {home}/.bashrc && echo GOT IN",
    "read a secret": "cat {secret} && echo GOT IN",
    "read a secret through a planted link": "ln -s {secret} link && cat link && echo GOT IN",
    "read a secret through a hard link": "ln {secret} hard && cat hard && echo GOT IN",
    "read a secret through /proc": "cat /proc/self/root{secret} && echo GOT IN",
    "read a secret from its folder": "cd {home} && cat secret.txt && echo GOT IN",
    "write through a planted link": "ln -s {outside} door && echo x > door/y && echo GOT IN",
    "copy the home": "tar cf - -C {home} . | grep -q canary && echo GOT IN",
    "list the home": "ls {home} | grep -q secret && echo GOT IN",
    "connect over TCP": "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo GOT IN",
    "send over UDP": "echo x > /dev/udp/127.0.0.1/{port}",
    "connect from a program": f'{{python}} -c "{CONNECT}"',
    "connect to a socket with a name": f'{{python}} -c "{NAMED}"',
    "connect to an abstract socket": f'{{python}} -c "{ABSTRACT}"',
    "look for another process": "kill -0 {neighbour} && echo GOT IN",
    "signal another process": "kill -USR1 {neighbour} && echo GOT IN",
    "read the environment of another": "tr '\\0' '\\n' < /proc/{neighbour}/environ"
    " | grep CANARY && echo GOT IN",
    "read the memory map of another": "grep -q . /proc/{neighbour}/maps && echo GOT IN",
    "go through the root of another": "ls /proc/{neighbour}/root/ && echo GOT IN",
    "set a limit of another": f'{{python}} -c "{LIMIT}"',
    "pin another": f'{{python}} -c "{PIN}"',
    "set the priority of another": f'{{python}} -c "{PRIORITY}"',
    "mark a file outside": f'{{python}} -c "{MARK}"',
    "reach shared memory": f'{{python}} -c "{SHARED}"',
    "trace": f'{{python}} -c "{TRACE}"',
    "make a name space": "unshare -Ur true && echo GOT IN",
}
FOR_ROOT = {
    "mount something": "mkdir -p m && unshare -m mount -t tmpfs none m && echo GOT IN",
    "make a device": "mknod disk b 7 0 && echo GOT IN",
    "read the system's passwords": "cat /etc/shadow >/dev/null && echo GOT IN",
    "change root": "chroot / true && echo GOT IN",
    "change the kernel": "cat /proc/sys/kernel/domainname > /proc/sys/kernel/domainname"
    " && echo GOT IN",
    "make the system writable": "mount -o remount,bind,rw /usr && echo GOT IN",
    "set the name of the machine": 'hostname "$(hostname)" && echo GOT IN',
}


@pytest.fixture(params=USERS)
def rig(request):
    made = SandboxRig(request.param)
    yield made
    made.close()


@pytest.fixture
def neighbour(rig):
    """A process of the same user that is none of the command's business."""
    if why := lacks(rig.user, "none"):
        pytest.skip(why)
    user = [] if rig.user == "own" else as_ordinary()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    words = [*user, "sh", "-c", "trap '' USR1; echo ready; read x"]
    with subprocess.Popen(words, env={**os.environ, "CANARY": "sings"}, **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        assert process.poll() is None
        process.communicate(b"\n")


@pytest.fixture
def listening(rig):
    """Somebody who listens: TCP and UDP on one port, a socket with a name and an abstract one.

    And memory of the user's own that is shared.
    """
    with ExitStack() as stack:
        user = [] if rig.user == "own" else as_ordinary()
        made = subprocess.run([*user, "ipcmk", "-M", "64"], capture_output=True, text=True)
        memory = made.stdout.split()[-1]
        stack.callback(subprocess.run, ["ipcrm", "-m", memory], check=True)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(tcp.getsockname())
        names = str(rig.outside / "socket"), f"\0bridle-{os.getpid()}"
        for name in names:
            local = stack.enter_context(socket.socket(socket.AF_UNIX))
            local.bind(name)
            local.listen()
        where = {
            "memory": memory,
            "port": tcp.getsockname()[1],
            "path": names[0],
            "abstract": names[1][1:],
        }
        yield Listening(where, udp)


class Listening(NamedTuple):
    """Where somebody listens, and what came over UDP."""

    where: dict[str, object]
    udp: socket.socket

    def heard(self):
        """Did anything come? A sender on this machine is done when it has come."""
        self.udp.setblocking(False)
        with suppress(BlockingIOError):
            return bool(self.udp.recv(10))
        return False


def script(attacks, rig, neighbour, listening):
    """All of them one after the other, each by itself, with its number before what it says."""
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    places = {"outside": rig.outside, "home": rig.home, "secret": rig.secret}
    lines = []
    for number, attack in enumerate(attacks):
        command = attack.format(python=python, neighbour=neighbour, **places, **listening.where)
        lines.append(f"( {command} ) 2>/dev/null | sed 's/^/{number}:/'")
    return "\n".join(lines)


def got_in(text, attacks, listening):
    said = text.splitlines()
    if listening.heard():
        said.append(f"{list(attacks).index('send over UDP')}:GOT IN")
    return {name for number, name in enumerate(attacks) if f"{number}:GOT IN" in said}


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_gets_out(rig, level, neighbour, listening):
    """Write outside, read a secret, connect out, signal another, follow a planted link, trace."""
    if why := lacks(rig.user, level):
        pytest.skip(why)
    as_root = rig.user == "own" and os.geteuid() == 0
    attacks = {**ATTACKS, **FOR_ROOT} if as_root else ATTACKS
    text = rig.run(level, script(attacks.values(), rig, neighbour, listening))
    assert got_in(text, attacks, listening) == set()
    outside = {path.name: path.read_text() for path in rig.outside.iterdir() if path.is_file()}
    assert outside == dict.fromkeys("abcd", "untouched\n")
    assert [path.name for path in rig.home.iterdir()] == ["secret.txt"]


def test_all_of_it_gets_out_where_there_is_no_sandbox(rig, neighbour, listening):
    """Otherwise the test above could not fail. Some systems forbid name spaces anyway, or marks."""
    text = rig.run("none", script(ATTACKS.values(), rig, neighbour, listening))
    forbidden = {"make a name space", "mark a file outside"}
    assert got_in(text, ATTACKS, listening) | forbidden == set(ATTACKS)


@pytest.mark.parametrize("level", LEVELS)
def test_places_that_everybody_can_write_are_not_shared(rig, level):
    if why := lacks(rig.user, level):
        pytest.skip(why)
    name = f"bridle-test-{os.getpid()}-{rig.user}-{level}"
    paths = [Path(place, name) for place in ("/tmp", "/dev/shm", "/var/tmp")]
    rig.run(level, "; ".join(f"echo x > {path}; cat {path}" for path in paths))
    assert [path for path in paths if path.exists()] == []


USUAL = (
    "prlimit --core=0 true && ulimit -c 0 && nice -n 3 true && ionice -c3 true && "
    "taskset -c $(taskset -cp $$ | grep -o '[0-9]*$') true && "
    "echo x > a && cp -a a b && tar --xattrs -cf t a && tar --xattrs -xf t && install a c && "
    "git init -q g && cp a g && git -C g add a && git -C g status --porcelain && "
    '{python} -c \'import shutil; shutil.copy2("a", "d")\' && cmp a d && echo GO ON'
)


def test_a_command_sets_its_own_limits_and_copies_with_all_that_a_file_has(rig):
    """What is refused at Landlock is in nobody's way."""
    if why := lacks(rig.user, "landlock"):
        pytest.skip(why)
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    assert "GO ON" in rig.run("landlock", USUAL.replace("{python}", python))


@pytest.mark.parametrize("level", LEVELS)
def test_a_group_is_not_lent_where_others_share_the_processes(rig, level, neighbour, listening):
    """In a space of its own it can be: folders have that bit, and programs copy it."""
    if why := lacks(rig.user, level):
        pytest.skip(why)
    attacks = modes("0o2000")
    text = rig.run(level, script(attacks.values(), rig, neighbour, listening))
    assert (got_in(text, attacks, listening) == set()) == (level == "landlock")


def test_plain_modes_can_be_set(rig):
    if why := lacks(rig.user, "landlock"):
        pytest.skip(why)
    command = (
        "touch a && chmod 755 a && chmod u+x,g-w a && chmod 1777 . && mkdir -m 700 d && "
        "install -m 644 a b && cp -p a c && umask 077 && touch e && stat -c %a a e | tr '\\n' ,"
    )
    assert "755,600," in rig.run("landlock", command)


def test_nothing_of_system_v_is_made_among_the_processes_of_the_machine(rig):
    if why := lacks(rig.user, "landlock"):
        pytest.skip(why)
    attempts = "; ".join(f"ipcmk {what} && echo GOT IN" for what in ("-M 10", "-Q", "-S 1"))
    assert "GOT IN" not in rig.run("landlock", attempts)
