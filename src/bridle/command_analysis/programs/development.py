"""Programs for developers: test runners, compilers, linters, interpreters, package managers.

Test runners, compilers and linters run the workspace's own code, and one approval covers that. Most
of their flags are harmless compared with what they run anyway; flags that reach outside are caught
because of where their paths lead. An unknown flag asks here, too, so the lists are long.

Interpreters and package managers run any code, so they ask; their versions do not.
"""

from msgspec.structs import replace

from bridle.command_analysis import checks
from bridle.command_analysis.argv import Check, Program

_RUNS = "runs the workspace's own code"


def _builder(
    flags: str,
    operands: str = "work*",
    *,
    harmless_alone: str = "",
    asks: tuple[str, ...] = (),
    single_dash: bool = False,
    check: Check | None = None,
) -> Program:
    return Program(
        "builds",
        flags,
        operands,
        _RUNS,
        (),
        asks,
        harmless_alone=harmless_alone,
        single_dash=single_dash,
        check=check,
    )


def _builder_with(
    subcommands: dict[str, Program],
    flags: str = "",
    *,
    harmless_alone: str = "",
    asks: tuple[str, ...] = (),
) -> Program:
    return Program("builds", flags, "", _RUNS, (), asks, subcommands, harmless_alone=harmless_alone)


_PYTEST = (
    "-v -q -x -s -l -r= -k= -m= -n= -p= --maxfail= --lf --ff --nf --sw --last-failed "
    "--failed-first --stepwise --tb= --durations= --durations-min= --co --collect-only "
    "--no-header --no-summary --capture= --showlocals --cov? --cov-report? --cov-branch "
    "--cov-fail-under= --no-cov --strict-markers --strict-config --color= --ignore=work "
    "--ignore-glob= --deselect= --timeout= --exitfirst --verbose --quiet --disable-warnings -W= "
    "--markers --fixtures --setup-show --junitxml=out --junit-xml=out --basetemp=out "
    "--rootdir=work --numprocesses= --dist= --cache-clear --pyargs --import-mode= --random-order "
    "--benchmark-only --benchmark-skip --doctest-modules --full-trace --log-cli-level= "
    "--snapshot-update --reruns= --version -h --help"
)
_CARGO = (
    "-q -v -r -p= -j= -F= --release --all --workspace --package= --exclude= --lib --bins --bin= "
    "--tests --test= --examples --example= --benches --bench= --all-targets --features= "
    "--all-features --no-default-features --no-run --no-fail-fast --locked --offline --frozen "
    "--verbose --quiet --color= --message-format= --jobs= --target= --profile= --doc --keep-going "
    "--manifest-path=work --target-dir=out"
)
_GO = (
    "-v -x -n -a -race -cover -short -json -failfast -count= -run= -bench= -benchmem -benchtime= "
    "-timeout= -parallel= -cpu= -p= -tags= -coverprofile=out -covermode= -coverpkg= -skip= -o=out "
    "-trimpath -shuffle= -list= -fuzz= -fuzztime= -mod= -buildvcs="
)
_RUFF = (
    "--fix --no-fix --diff --show-fixes --select= --ignore= --extend-select= --config=work "
    "--quiet -q -v --verbose --exit-zero --statistics --output-format= --target-version= "
    "--line-length= --check --preview --no-cache --exclude= --force-exclude --stdin-filename= "
    "--unsafe-fixes"
)
_NPM_TASKS = {
    task: _builder(
        "-s --silent -w= --workspace= --workspaces --if-present",
        "text*",
        check=checks.task_names,
    )
    for task in ("test", "t", "run", "run-script", "start", "build", "lint", "ci-test")
}
_NODE_FLAGS = (
    "-s --silent --prefix=cd -C=cd --dir=cd -w= --workspace= -r --recursive --filter= --cwd=cd"
)
_INSTALLS = Program(reason="installs packages over the network", network=True)
# `yarn` alone installs packages; `yarn --version` runs the yarn that the repository names.
_NODE_RUNNERS = Program(
    "changes",
    _NODE_FLAGS,
    "",
    "installs packages over the network",
    network=True,
    subcommands={
        **_NPM_TASKS,
        **dict.fromkeys(("install", "i", "ci", "add", "update", "up", "upgrade"), _INSTALLS),
        "exec": Program(reason="may download and run a package", network=True),
        "publish": Program(reason="publishes over the network", network=True),
    },
    asks=("npm install", "npm install x", "npm publish", "npm exec x", "yarn", "pnpm -v"),
)
_NPM_LIST = Program(
    "reads", "-a -g -l --depth= --all --json --long --prod --omit= --global", "text*"
)
_MAVEN = (
    "-q -B -o -e -X -T= -pl= -am -D= -P= -f=work -U -ntp --batch-mode --offline --quiet "
    "--no-transfer-progress -Dtest= -DskipTests"
)
_GRADLE = (
    "-q -i -s -x= -p=cd --offline --info --stacktrace --quiet --no-daemon --daemon --tests= "
    "--parallel --continue --console= --rerun-tasks --build-cache --no-build-cache "
    "--warning-mode="
)

TABLE = {
    "pytest": _builder(
        _PYTEST,
        asks=("pytest --pdb", "pytest /etc", "pytest --rootdir=/x", "pytest --junitxml=/x.xml"),
    ),
    "tox": _builder(
        "-e= -p= -q -v -r -l --notest --recreate",
        "text*",
        asks=("tox -c /x",),
        check=checks.task_names,
    ),
    "nox": _builder(
        "-s= -l -r -k= -t= -p= --sessions= --list --reuse-existing-virtualenvs",
        "text*",
        asks=("nox -f /x.py",),
        check=checks.task_names,
    ),
    "coverage": _builder_with(
        {
            "run": _builder("-m= -a --branch --append --source= --omit= --include= -p", "text*"),
            "report": _builder("-m --show-missing --skip-covered --fail-under= --omit= --include="),
            "html": _builder("-d=out --directory=out"),
            "xml": _builder("-o=out"),
            "combine": _builder(""),
            "json": _builder("-o=out"),
        }
    ),
    "unittest": _builder("-v -q -f -b -k= --failfast --locals", "text*"),
    "make": _builder(
        "-j? -k -B -s -n -i -C=cd -f=work -l? -O? -w --jobs? --keep-going --always-make --silent "
        "--dry-run --just-print --directory=cd --file=work --no-print-directory --version",
        "text*",
        harmless_alone="--version",
        check=checks.make,
        asks=("make -f /etc/x", "make -C /etc", "make --eval=x", "make SHELL=/x"),
    ),
    "ninja": _builder(
        "-C=cd -j= -k= -v -n -t= -d= --quiet",
        "text*",
        asks=("ninja -C /x",),
        check=checks.task_names,
    ),
    "cmake": _builder(
        "--build=work -j? --parallel? --target= -t= --config= -S=work -B=work -G= -D= --preset= "
        "-v --verbose",
        "work*",
        asks=("cmake -P x.cmake", "cmake -E rm x"),
        check=checks.task_names,
    ),
    "ctest": _builder(
        "-j= -R= -E= -V -VV -N -C= --output-on-failure --test-dir=work --verbose",
        "text*",
        asks=("ctest -S x",),
    ),
    "meson": _builder_with(
        {
            "test": _builder("-C=cd -v --verbose --suite= --print-errorlogs", "text*"),
            "compile": _builder("-C=cd -j= -v", "text*", check=checks.task_names),
        }
    ),
    "cargo": _builder_with(
        {
            **{
                name: _builder(_CARGO, "text*")
                for name in (
                    "build",
                    "test",
                    "check",
                    "clippy",
                    "bench",
                    "doc",
                    "b",
                    "t",
                    "c",
                    "nextest",
                    "tree",
                    "metadata",
                )
            },
            "fmt": _builder("--check --all -v -q -p= --package=", "text*"),
            "run": _builder(_CARGO, "text*"),
            **dict.fromkeys(("install", "add", "update", "fetch"), _INSTALLS),
            "publish": Program(reason="publishes over the network", network=True),
        },
        "-q -v -V --version --color= --locked --offline --frozen",
        asks=(
            "cargo install x",
            "cargo --config x build",
            "cargo publish",
            "cargo add x",
            "cargo +nightly build",
            "cargo test --target-dir=/x",
        ),
    ),
    "rustfmt": _builder("--check --edition= -l -q --color="),
    # rustup may download the toolchain that the folder asks for, even for this.
    "rustc": Program(operands="work*", asks=("rustc x.rs -o /x", "rustc --version")),
    "go": _builder_with(
        {
            **{
                name: _builder(_GO, "text*", single_dash=True)
                for name in ("build", "test", "vet", "fmt", "run", "generate")
            },
            # The module may ask for another version of go, which is downloaded even for these.
            "version": _builder("-m -v", "", single_dash=True),
            "env": _builder("-json", "text*", single_dash=True, check=checks.go_env),
            "list": _builder("-m -json -f= -deps -test -e", "text*", single_dash=True),
            "mod": Program(reason="may fetch modules over the network", network=True),
            "get": Program(reason="fetches modules over the network", network=True),
            "install": Program(reason="installs programs"),
        },
        asks=(
            "go version",
            "go env GOPATH",
            "go env -w GOFLAGS=-x",
            "go get x",
            "go test -exec ./x",
            "go build -toolexec=./x",
            "go vet -vettool=./x",
        ),
    ),
    "gofmt": _builder("-l -d -s -w -e"),
    "npm": replace(
        _NODE_RUNNERS,
        subcommands={**_NODE_RUNNERS.subcommands, "ls": _NPM_LIST, "list": _NPM_LIST},
        harmless_alone="--version -v",
        runs=("npm ls", "npm ls --depth=0", "npm --version"),
        asks=("npm ci", "npm outdated", "npm view x"),
    ),
    "pnpm": _NODE_RUNNERS,
    "yarn": _NODE_RUNNERS,
    "bun": _NODE_RUNNERS,
    "jest": _builder(
        "-t= -u -i --watch --watchAll= --coverage --ci --silent --verbose --bail? --runInBand "
        "--maxWorkers= --testPathPattern= --testNamePattern= --passWithNoTests --no-cache "
        "--onlyChanged --json",
        "work*",
        asks=("jest --config=/x", "jest --globalSetup=/x"),
    ),
    "vitest": _builder(
        "-t= -u --run --watch --coverage --reporter= --silent",
        "text*",
        asks=("vitest --config /x",),
    ),
    "mocha": _builder(
        "-g= -b -R= -t= --grep= --bail --reporter= --timeout= --recursive --exit",
        asks=("mocha -r /x",),
    ),
    "playwright": _builder_with(
        {"test": _builder("-g= --headed --project= --reporter= --workers=", "text*")}
    ),
    "tsc": _builder(
        "-p=work -b -w --noEmit --watch --project=work --build --pretty --skipLibCheck --strict "
        "--incremental --listFiles --outDir=out",
        asks=("tsc --outDir /x",),
    ),
    "eslint": _builder(
        "--fix --ext= --quiet --cache --max-warnings= --format= -f= --no-error-on-"
        "unmatched-pattern --color --no-color",
        asks=("eslint --rulesdir /x",),
    ),
    "prettier": _builder(
        "--check -c -l --list-different --write -w --log-level= --ignore-unknown",
        asks=("prettier --plugin=/x .",),
    ),
    "biome": _builder_with(
        {v: _builder("--write --apply") for v in ("check", "lint", "format", "ci")}
    ),
    "ruff": _builder_with(
        {"check": _builder(_RUFF), "format": _builder(_RUFF)},
        harmless_alone="--version version",
    ),
    "black": _builder(
        "--check --diff -q -v -l= -t= --quiet --verbose --line-length= --fast --color --exclude= "
        "--target-version=",
        asks=("black /etc/x.py", "black --config /x ."),
    ),
    "isort": _builder("--check --check-only --diff -q -v --profile= --profile -c --only-modified"),
    "mypy": _builder(
        "--strict -p= -m= -v --ignore-missing-imports --no-error-summary --pretty "
        "--show-error-codes --python-version= --no-incremental --follow-imports= "
        "--config-file=work --warn-unreachable --namespace-packages --explicit-package-bases",
        asks=("mypy --config-file=/x .", "mypy --install-types x"),
    ),
    "pyright": _builder("-p=work --project=work --stats --verbose --outputjson --warnings"),
    "flake8": _builder(
        "--max-line-length= --select= --ignore= --extend-ignore= --exclude= --count --statistics "
        "-q -v --show-source --max-complexity="
    ),
    "pylint": _builder("-E -j= --disable= --enable= --errors-only --score= -r= --output-format="),
    "bandit": _builder("-r -q -ll -lll -s= --severity-level="),
    "lint-imports": _builder("--verbose --no-cache"),
    "pre-commit": _builder_with({"run": _builder("-a --all-files --files -v", "text*")}),
    "shellcheck": Program(
        "reads",
        "-s= -e= -f= -S= -i= -o= -C? --shell= --exclude= --format= --severity=",
        "read*",
        harmless_alone="--version",
        runs=("shellcheck -s bash run.sh",),
        asks=("shellcheck -x run.sh",),
    ),
    "mvn": _builder(
        _MAVEN, "text*", check=checks.maven_goals, asks=("mvn -s /x test", "mvn exec:exec")
    ),
    "mvnw": _builder(_MAVEN, "text*", check=checks.maven_goals),
    "gradle": _builder(_GRADLE, "text*", asks=("gradle -I /x build",), check=checks.task_names),
    "gradlew": _builder(_GRADLE, "text*", check=checks.task_names),
    "configure": _builder("--prefix=text --enable-debug", "text*"),
    "dotnet": _builder_with(
        {
            v: _builder(
                "-c= --configuration= --no-build --no-restore -v= --verbosity= --filter= --nologo "
                "-f= --framework="
            )
            for v in ("build", "test", "run", "format", "clean")
        },
    ),
    "mix": _builder_with(
        {
            v: _builder("--trace --cover --failed --stale --only= --check-formatted")
            for v in ("test", "compile", "format", "credo", "dialyzer")
        }
    ),
    "rspec": _builder("-f= -e= -t= -fd --format= --example= --tag= --fail-fast --only-failures"),
    "rake": _builder("-T -s -q -t --trace --tasks", "text*", check=checks.task_names),
    "rubocop": _builder("-a -A -f= --format= --only= --autocorrect -D"),
    "phpunit": _builder("--filter= --testdox --group= --stop-on-failure --colors? --testsuite="),
    "phpstan": _builder_with({"analyse": _builder("-l= --level= --no-progress -c=work")}),
    "swift": _builder_with(
        {v: _builder("-c= -v --filter= --parallel", "text*") for v in ("build", "test")}
    ),
    "zig": _builder_with(
        {
            v: _builder("-Doptimize=", "text*", single_dash=True, check=checks.task_names)
            for v in ("build", "test", "fmt")
        },
        harmless_alone="version",
    ),
    "bazel": _builder_with(
        {
            v: _builder("-c= --config= --test_output= --keep_going -k", "text*")
            for v in ("build", "test", "query")
        }
    ),
    "gcc": Program(
        operands="work*", flags="-o=out", reason="compiles", harmless_alone="--version -v"
    ),
    "manage.py": _builder_with(
        {
            "test": _builder("-v= --keepdb --parallel? --failfast", "text*"),
            "check": _builder("--deploy"),
            "showmigrations": _builder("", "text*"),
        },
        asks=("./manage.py migrate", "python manage.py shell"),
    ),
    "django-admin": _builder_with(
        {"test": _builder("-v= --keepdb --parallel?", "text*"), "check": _builder("")}
    ),
    "hadolint": Program("reads", "-f= --format= --ignore=", "read*"),
    "sphinx-build": _builder("-b= -W -q -n -E -a", "work write text*"),
    "mkdocs": _builder_with({"build": _builder("-q -s --strict -d=out", "text*")}),
}
for _name in ("mypy", "black", "eslint", "tsc", "prettier", "ninja", "cmake", "ctest"):
    TABLE[_name] = replace(TABLE[_name], harmless_alone="--version", runs=(f"{_name} --version",))
TABLE["py.test"] = TABLE["pytest"]
for _name in ("g++", "clang", "clang++", "cc"):
    TABLE[_name] = TABLE["gcc"]


_CODE_FLAGS = "-c -e -E -r -m -p --eval --print"  # the script is an argument, not a file
_PROJECT = "may run the project's own programs"
_INSTALL = "installs packages over the network"


def _language(
    flags: str, harmless_alone: str = "--version -V", asks: tuple[str, ...] = ()
) -> Program:
    return Program(
        "changes",
        flags,
        "run text*",
        "",
        (),
        asks,
        check=checks.interpreter,
        harmless_alone=harmless_alone,
        operand_flags=_CODE_FLAGS,
    )


_PIP = Program(
    "changes",
    "-q -v --disable-pip-version-check --no-color --no-input",
    "text*",
    _INSTALL,
    network=True,
    subcommands={
        "list": Program(
            "reads", "-e -l --format= --local --user --not-required --exclude= --editable"
        ),
        "show": Program("reads", "-f -q --files --verbose", "text*"),
        "freeze": Program("reads", "-l --local --user --all --exclude= --exclude-editable"),
        "check": Program("reads"),
        "install": Program(
            reason=_INSTALL, network=True, operands="text*", flags="-r=read -e=read -U -q --upgrade"
        ),
        "uninstall": Program(reason="removes packages", operands="text*"),
        "download": Program(reason=_INSTALL, network=True, operands="text*"),
    },
    harmless_alone="--version -V --help",
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
_SHELL = Program(
    "changes",
    "-e -u -x -v -l -i -s -o= --norc --noprofile --posix",
    "run text*",
    "runs a script",
    harmless_alone="--version",
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

TABLE |= {
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
    "javac": Program(operands="work*", harmless_alone="-version --version"),
    "kotlinc": Program(operands="work*", harmless_alone="-version"),
    "pip": _PIP,
    "uv": Program(
        "changes",
        "-q -v --offline",
        "text*",
        _INSTALL,
        network=True,
        harmless_alone="--version -V version",
        subcommands={
            "pip": Program(
                "changes",
                reason=_INSTALL,
                network=True,
                subcommands={
                    "list": Program("builds", "--format=", "", _PROJECT),
                    "show": Program("builds", "", "text*", _PROJECT),
                    "freeze": Program("builds", "", "", _PROJECT),
                },
            ),
            "tree": Program(reason=_INSTALL, network=True),
        },
        runs=("uv --version",),
        asks=("uv pip list", "uv sync", "uv add x", "uv pip install x"),
    ),
    "poetry": Program(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        subcommands={
            "show": Program("builds", "--tree --no-dev", "text*", _PROJECT),
            "check": Program("builds", "", "", _PROJECT),
        },
        asks=("poetry show", "poetry --version", "poetry install", "poetry add x"),
    ),
    "conda": Program(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        harmless_alone="--version",
        subcommands={"list": Program("reads", "", "text*"), "info": Program("reads")},
        runs=("conda list",),
        asks=("conda install x",),
    ),
    "gem": Program(
        "changes",
        "",
        "text*",
        _INSTALL,
        network=True,
        harmless_alone="--version -v",
        subcommands={"list": Program("reads", "-l --local", "text*")},
        runs=("gem list",),
        asks=("gem install x",),
    ),
    "bundle": Program("changes", "", "text*", _INSTALL, network=True, asks=("bundle install",)),
    "composer": Program("changes", "", "text*", _INSTALL, network=True, asks=("composer install",)),
    "rustup": Program(
        "changes", "", "text*", _INSTALL, network=True, asks=("rustup update", "rustup show")
    ),
    "nvm": Program("changes", "", "text*", asks=("nvm use 18",)),
    **{
        name: Program(
            "changes",
            "",
            "text*",
            _INSTALL,
            network=True,
            asks=(f"{name} install x",),
            harmless_alone="--version",
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
    "dpkg": Program(
        "changes",
        "-l -s= -L= -S= --list",
        "text*",
        "changes installed programs",
        harmless_alone="-l --list --version",
        runs=("dpkg -l",),
        asks=("dpkg -i x.deb",),
    ),
    **dict.fromkeys(("bash", "sh", "dash"), _SHELL),
    **{
        name: Program("changes", "", "run text*", "runs a script", harmless_alone="--version")
        for name in ("zsh", "ksh", "fish", "csh", "tcsh", "ash", "rbash")
    },
}
TABLE["python3"] = TABLE["python2"] = TABLE["pypy"] = TABLE["pypy3"] = TABLE["py"] = TABLE["python"]
TABLE["nodejs"] = TABLE["node"]
NODE_CHECK = Program("reads", "--check", "read")  # it is parsed but not run
TABLE["pip3"] = TABLE["pip"]

# Programs that `python -m` runs under another name.
MODULES = {
    "json.tool": Program("reads", "--indent= --sort-keys --compact --no-ensure-ascii", "read")
}
