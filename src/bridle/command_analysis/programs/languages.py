"""Interpreters and package managers: they run code, so they ask; their versions do not."""

from bridle.command_analysis.argv import Known

_GIVEN = "-c -e -E -r -m -p --eval --print"  # the program is a word, not a file
_OWN = "may run the project's own programs"
_INSTALL = "installs packages over the network"


def _language(flags: str, alone: str = "--version -V", asks: tuple[str, ...] = ()) -> Known:
    return Known(
        "changes",
        flags,
        "run text*",
        "",
        (),
        asks,
        check="interpreter",
        alone=alone,
        instead=_GIVEN,
    )


_PIP = Known(
    "changes",
    "-q -v --disable-pip-version-check --no-color --no-input",
    "text*",
    _INSTALL,
    network=True,
    verbs={
        "list": Known(
            "reads", "-e -l --format= --local --user --not-required --exclude= --editable"
        ),
        "show": Known("reads", "-f -q --files --verbose", "text*"),
        "freeze": Known("reads", "-l --local --user --all --exclude= --exclude-editable"),
        "check": Known("reads"),
        "install": Known(
            reason=_INSTALL, network=True, operands="text*", flags="-r=read -e=read -U -q --upgrade"
        ),
        "uninstall": Known(reason="removes packages", operands="text*"),
        "download": Known(reason=_INSTALL, network=True, operands="text*"),
    },
    alone="--version -V --help",
    runs=(
        "pip list",
        "pip show requests",
        "pip freeze",
        "pip --version",
        "pip3 list --format=json",
    ),
    asks=(
        "pip install x",
        "pip list --outdated",
        "pip config set a b",
        "pip download x",
        "pip install -r requirements.txt",
        "pip freeze --path /x",
    ),
)
_SHELL = Known(
    "changes",
    "-e -u -x -v -l -i -s -o= --norc --noprofile --posix",
    "run text*",
    "runs a script",
    alone="--version",
    runs=(
        "bash -c 'ls -l'",
        "sh -c 'cat README.md | wc -l'",
        "bash -lc 'git status'",
        "bash --version",
        "bash -euo pipefail -c 'ls && pwd'",
    ),
    asks=(
        "bash run.sh",
        "sh -c 'rm x'",
        'bash -c "$X"',
        "bash -i",
        "sh < run.sh",
        "bash",
        "bash --rcfile x -c ls",
        "sh -c 'cat /etc/passwd'",
        "zsh -c 'ls'",
        "bash <<< ls",
    ),
)
_PYTHON = "-c= -m= -u -B -O -OO -I -s -S -E -P -W= -X= -q -v -b -d -i -x"

TABLE = {
    "python": _language(
        _PYTHON,
        "--version -V --help -h",
        asks=(
            "python script.py",
            "python -c 'print(1)'",
            "python",
            "python -m http.server",
            "python -m pip install x",
            "python -i",
            "python /etc/x.py",
            "python -m json.tool x",
            "python -I -m test test_grammar",
            "python -I -m cat README.md",
        ),
    ),
    "node": _language(
        "-e= -p= -r= -c -i --eval= --print= --check --test",
        "--version -v --help",
        asks=("node x.js", "node -e 'x'", "node -r ./x --version"),
    ),
    "ruby": _language("-e= -w -c -n -p -r= -I=", "--version -v", asks=("ruby x.rb", "ruby -e 1")),
    "perl": _language(
        "-e= -E= -n -p -i? -w -l? -a -M= -I= -c",
        "--version -v",
        asks=("perl -e 1", "perl -pi -e s/a/b/ x", "perl x.pl"),
    ),
    "php": _language("-r= -l -f=run -i -m", "--version -v", asks=("php -r 1", "php x.php")),
    "lua": _language("-e= -i -l= -v", "-v", asks=("lua x.lua",)),
    "java": _language("-jar= -cp= -classpath= -version", "-version --version", asks=("java X",)),
    "deno": _language("-A", "--version", asks=("deno run x.ts",)),
    "Rscript": _language("-e=", "--version", asks=("Rscript -e 1",)),
    "julia": _language("-e=", "--version", asks=("julia x.jl",)),
    "elixir": _language("-e=", "--version", asks=("elixir x.exs",)),
    "osascript": _language("-e=", "", asks=("osascript -e 1",)),
    "javac": Known(operands="work*", alone="-version --version"),
    "kotlinc": Known(operands="work*", alone="-version"),
    "pip": _PIP,
    "uv": Known(
        "changes",
        "-q -v --offline",
        "text*",
        _INSTALL,
        network=True,
        alone="--version -V version",
        verbs={
            "pip": Known(
                "changes",
                reason=_INSTALL,
                network=True,
                verbs={
                    "list": Known("builds", "--format=", "", _OWN),
                    "show": Known("builds", "", "text*", _OWN),
                    "freeze": Known("builds", "", "", _OWN),
                },
            ),
            "tree": Known(reason=_INSTALL, network=True),
        },
        runs=("uv --version",),
        asks=("uv pip list", "uv sync", "uv add x", "uv pip install x"),
    ),
    "poetry": Known(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        verbs={
            "show": Known("builds", "--tree --no-dev", "text*", _OWN),
            "check": Known("builds", "", "", _OWN),
        },
        asks=("poetry show", "poetry --version", "poetry install", "poetry add x"),
    ),
    "conda": Known(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        alone="--version",
        verbs={"list": Known("reads", "", "text*"), "info": Known("reads")},
        runs=("conda list",),
        asks=("conda install x",),
    ),
    "gem": Known(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        alone="--version -v",
        verbs={"list": Known("reads", "-l --local", "text*")},
        runs=("gem list",),
        asks=("gem install x",),
    ),
    "bundle": Known("changes", "", "text*", _INSTALL, network=True, asks=("bundle install",)),
    "composer": Known("changes", "", "text*", _INSTALL, network=True, asks=("composer install",)),
    "rustup": Known(
        "changes", "", "text*", _INSTALL, network=True, asks=("rustup update", "rustup show")
    ),
    "nvm": Known("changes", "", "text*", asks=("nvm use 18",)),
    **{
        name: Known(
            "changes",
            "",
            "text*",
            _INSTALL,
            network=True,
            asks=(f"{name} install x",),
            alone="--version",
        )
        for name in (
            "apt",
            "apt-get",
            "brew",
            "dnf",
            "yum",
            "pacman",
            "apk",
            "snap",
            "pipx",
            "easy_install",
        )
    },
    "dpkg": Known(
        "changes",
        "-l -s= -L= -S= --list",
        "text*",
        "changes installed programs",
        alone="-l --list --version",
        runs=("dpkg -l",),
        asks=("dpkg -i x.deb",),
    ),
    **dict.fromkeys(("bash", "sh", "dash"), _SHELL),
    **{
        name: Known("changes", "", "run text*", "runs a script", alone="--version")
        for name in ("zsh", "ksh", "fish", "csh", "tcsh", "ash", "rbash")
    },
}
TABLE["python3"] = TABLE["python2"] = TABLE["pypy"] = TABLE["pypy3"] = TABLE["py"] = TABLE["python"]
TABLE["nodejs"] = TABLE["node"]
NODE_CHECK = Known("reads", "--check", "read")  # it is parsed, and not run
TABLE["pip3"] = TABLE["pip"]

# Programs which `python -m` runs under another name than their own.
MODULES = {"json.tool": Known("reads", "--indent= --sort-keys --compact --no-ensure-ascii", "read")}
