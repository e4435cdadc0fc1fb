"""Test runners, compilers and linters: they run the workspace's own code.

One approval covers that. Most of their flags are harmless compared with what they run anyway; flags
that reach outside are caught because of where their paths lead. An unknown flag asks here, too, so
the lists are long.
"""

from msgspec.structs import replace

from bridle.command_analysis.argv import Known

_RUNS = "runs the workspace's own code"


def _builds(
    flags: str,
    operands: str = "work*",
    *,
    alone: str = "",
    asks: tuple[str, ...] = (),
    single: bool = False,
    check: str = "",
) -> Known:
    return Known(
        "builds", flags, operands, _RUNS, (), asks, alone=alone, single=single, check=check
    )


def _verbs(
    verbs: dict[str, Known],
    flags: str = "",
    *,
    alone: str = "",
    asks: tuple[str, ...] = (),
) -> Known:
    return Known("builds", flags, "", _RUNS, (), asks, verbs, alone=alone)


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
    task: _builds(
        "-s --silent -w= --workspace= --workspaces --if-present", "text*", check="targets"
    )
    for task in ("test", "t", "run", "run-script", "start", "build", "lint", "ci-test")
}
_NODE_FLAGS = (
    "-s --silent --prefix=cd -C=cd --dir=cd -w= --workspace= -r --recursive --filter= --cwd=cd"
)
_INSTALLS = Known(reason="installs packages over the network", network=True)
# Without a verb `yarn` installs; `yarn --version` runs the yarn that the repository names.
_NODE_RUNNERS = Known(
    "changes",
    _NODE_FLAGS,
    "",
    "installs packages over the network",
    network=True,
    verbs={
        **_NPM_TASKS,
        **dict.fromkeys(("install", "i", "ci", "add", "update", "up", "upgrade"), _INSTALLS),
        "exec": Known(reason="may download and run a package", network=True),
        "publish": Known(reason="publishes over the network", network=True),
    },
    asks=("npm install", "npm install x", "npm publish", "npm exec x", "yarn", "pnpm -v"),
)
_NPM_LIST = Known("reads", "-a -g -l --depth= --all --json --long --prod --omit= --global", "text*")
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
    "pytest": _builds(
        _PYTEST,
        asks=("pytest --pdb", "pytest /etc", "pytest --rootdir=/x", "pytest --junitxml=/x.xml"),
    ),
    "tox": _builds(
        "-e= -p= -q -v -r -l --notest --recreate", "text*", asks=("tox -c /x",), check="targets"
    ),
    "nox": _builds(
        "-s= -l -r -k= -t= -p= --sessions= --list --reuse-existing-virtualenvs",
        "text*",
        asks=("nox -f /x.py",),
        check="targets",
    ),
    "coverage": _verbs(
        {
            "run": _builds("-m= -a --branch --append --source= --omit= --include= -p", "text*"),
            "report": _builds("-m --show-missing --skip-covered --fail-under= --omit= --include="),
            "html": _builds("-d=out --directory=out"),
            "xml": _builds("-o=out"),
            "combine": _builds(""),
            "json": _builds("-o=out"),
        }
    ),
    "unittest": _builds("-v -q -f -b -k= --failfast --locals", "text*"),
    "make": _builds(
        "-j? -k -B -s -n -i -C=cd -f=work -l? -O? -w --jobs? --keep-going --always-make --silent "
        "--dry-run --just-print --directory=cd --file=work --no-print-directory --version",
        "text*",
        alone="--version",
        check="make",
        asks=("make -f /etc/x", "make -C /etc", "make --eval=x", "make SHELL=/x"),
    ),
    "ninja": _builds(
        "-C=cd -j= -k= -v -n -t= -d= --quiet", "text*", asks=("ninja -C /x",), check="targets"
    ),
    "cmake": _builds(
        "--build=work -j? --parallel? --target= -t= --config= -S=work -B=work -G= -D= --preset= "
        "-v --verbose",
        "work*",
        asks=("cmake -P x.cmake", "cmake -E rm x"),
        check="targets",
    ),
    "ctest": _builds(
        "-j= -R= -E= -V -VV -N -C= --output-on-failure --test-dir=work --verbose",
        "text*",
        asks=("ctest -S x",),
    ),
    "meson": _verbs(
        {
            "test": _builds("-C=cd -v --verbose --suite= --print-errorlogs", "text*"),
            "compile": _builds("-C=cd -j= -v", "text*", check="targets"),
        }
    ),
    "cargo": _verbs(
        {
            **{
                verb: _builds(_CARGO, "text*")
                for verb in (
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
            "fmt": _builds("--check --all -v -q -p= --package=", "text*"),
            "run": _builds(_CARGO, "text*"),
            **dict.fromkeys(("install", "add", "update", "fetch"), _INSTALLS),
            "publish": Known(reason="publishes over the network", network=True),
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
    "rustfmt": _builds("--check --edition= -l -q --color="),
    # What rustup puts in its place may fetch the toolchain that the folder names, even for this.
    "rustc": Known(operands="work*", asks=("rustc x.rs -o /x", "rustc --version")),
    "go": _verbs(
        {
            **{
                verb: _builds(_GO, "text*", single=True)
                for verb in ("build", "test", "vet", "fmt", "run", "generate")
            },
            # The module may name another version of go, which is fetched and run even for these.
            "version": _builds("-m -v", "", single=True),
            "env": _builds("-json", "text*", single=True, check="goenv"),
            "list": _builds("-m -json -f= -deps -test -e", "text*", single=True),
            "mod": Known(reason="may fetch modules over the network", network=True),
            "get": Known(reason="fetches modules over the network", network=True),
            "install": Known(reason="installs programs"),
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
    "gofmt": _builds("-l -d -s -w -e"),
    "npm": replace(
        _NODE_RUNNERS,
        verbs={**_NODE_RUNNERS.verbs, "ls": _NPM_LIST, "list": _NPM_LIST},
        alone="--version -v",
        runs=("npm ls", "npm ls --depth=0", "npm --version"),
        asks=("npm ci", "npm outdated", "npm view x"),
    ),
    "pnpm": _NODE_RUNNERS,
    "yarn": _NODE_RUNNERS,
    "bun": _NODE_RUNNERS,
    "jest": _builds(
        "-t= -u -i --watch --watchAll= --coverage --ci --silent --verbose --bail? --runInBand "
        "--maxWorkers= --testPathPattern= --testNamePattern= --passWithNoTests --no-cache "
        "--onlyChanged --json",
        "work*",
        asks=("jest --config=/x", "jest --globalSetup=/x"),
    ),
    "vitest": _builds(
        "-t= -u --run --watch --coverage --reporter= --silent",
        "text*",
        asks=("vitest --config /x",),
    ),
    "mocha": _builds(
        "-g= -b -R= -t= --grep= --bail --reporter= --timeout= --recursive --exit",
        asks=("mocha -r /x",),
    ),
    "playwright": _verbs(
        {"test": _builds("-g= --headed --project= --reporter= --workers=", "text*")}
    ),
    "tsc": _builds(
        "-p=work -b -w --noEmit --watch --project=work --build --pretty --skipLibCheck --strict "
        "--incremental --listFiles --outDir=out",
        asks=("tsc --outDir /x",),
    ),
    "eslint": _builds(
        "--fix --ext= --quiet --cache --max-warnings= --format= -f= --no-error-on-"
        "unmatched-pattern --color --no-color",
        asks=("eslint --rulesdir /x",),
    ),
    "prettier": _builds(
        "--check -c -l --list-different --write -w --log-level= --ignore-unknown",
        asks=("prettier --plugin=/x .",),
    ),
    "biome": _verbs({v: _builds("--write --apply") for v in ("check", "lint", "format", "ci")}),
    "ruff": _verbs(
        {"check": _builds(_RUFF), "format": _builds(_RUFF)},
        alone="--version version",
    ),
    "black": _builds(
        "--check --diff -q -v -l= -t= --quiet --verbose --line-length= --fast --color --exclude= "
        "--target-version=",
        asks=("black /etc/x.py", "black --config /x ."),
    ),
    "isort": _builds("--check --check-only --diff -q -v --profile= --profile -c --only-modified"),
    "mypy": _builds(
        "--strict -p= -m= -v --ignore-missing-imports --no-error-summary --pretty "
        "--show-error-codes --python-version= --no-incremental --follow-imports= "
        "--config-file=work --warn-unreachable --namespace-packages --explicit-package-bases",
        asks=("mypy --config-file=/x .", "mypy --install-types x"),
    ),
    "pyright": _builds("-p=work --project=work --stats --verbose --outputjson --warnings"),
    "flake8": _builds(
        "--max-line-length= --select= --ignore= --extend-ignore= --exclude= --count --statistics "
        "-q -v --show-source --max-complexity="
    ),
    "pylint": _builds("-E -j= --disable= --enable= --errors-only --score= -r= --output-format="),
    "bandit": _builds("-r -q -ll -lll -s= --severity-level="),
    "lint-imports": _builds("--verbose --no-cache"),
    "pre-commit": _verbs({"run": _builds("-a --all-files --files -v", "text*")}),
    "shellcheck": Known(
        "reads",
        "-s= -e= -f= -S= -i= -o= -C? --shell= --exclude= --format= --severity=",
        "read*",
        alone="--version",
        runs=("shellcheck -s bash run.sh",),
        asks=("shellcheck -x run.sh",),
    ),
    "mvn": _builds(_MAVEN, "text*", check="goals", asks=("mvn -s /x test", "mvn exec:exec")),
    "mvnw": _builds(_MAVEN, "text*", check="goals"),
    "gradle": _builds(_GRADLE, "text*", asks=("gradle -I /x build",), check="targets"),
    "gradlew": _builds(_GRADLE, "text*", check="targets"),
    "configure": _builds("--prefix=text --enable-debug", "text*"),
    "dotnet": _verbs(
        {
            v: _builds(
                "-c= --configuration= --no-build --no-restore -v= --verbosity= --filter= --nologo "
                "-f= --framework="
            )
            for v in ("build", "test", "run", "format", "clean")
        },
    ),
    "mix": _verbs(
        {
            v: _builds("--trace --cover --failed --stale --only= --check-formatted")
            for v in ("test", "compile", "format", "credo", "dialyzer")
        }
    ),
    "rspec": _builds("-f= -e= -t= -fd --format= --example= --tag= --fail-fast --only-failures"),
    "rake": _builds("-T -s -q -t --trace --tasks", "text*", check="targets"),
    "rubocop": _builds("-a -A -f= --format= --only= --autocorrect -D"),
    "phpunit": _builds("--filter= --testdox --group= --stop-on-failure --colors? --testsuite="),
    "phpstan": _verbs({"analyse": _builds("-l= --level= --no-progress -c=work")}),
    "swift": _verbs(
        {v: _builds("-c= -v --filter= --parallel", "text*") for v in ("build", "test")}
    ),
    "zig": _verbs(
        {
            v: _builds("-Doptimize=", "text*", single=True, check="targets")
            for v in ("build", "test", "fmt")
        },
        alone="version",
    ),
    "bazel": _verbs(
        {
            v: _builds("-c= --config= --test_output= --keep_going -k", "text*")
            for v in ("build", "test", "query")
        }
    ),
    "gcc": Known(operands="work*", flags="-o=out", reason="compiles", alone="--version -v"),
    "manage.py": _verbs(
        {
            "test": _builds("-v= --keepdb --parallel? --failfast", "text*"),
            "check": _builds("--deploy"),
            "showmigrations": _builds("", "text*"),
        },
        asks=("./manage.py migrate", "python manage.py shell"),
    ),
    "django-admin": _verbs(
        {"test": _builds("-v= --keepdb --parallel?", "text*"), "check": _builds("")}
    ),
    "hadolint": Known("reads", "-f= --format= --ignore=", "read*"),
    "sphinx-build": _builds("-b= -W -q -n -E -a", "work write text*"),
    "mkdocs": _verbs({"build": _builds("-q -s --strict -d=out", "text*")}),
}
for _name in ("mypy", "black", "eslint", "tsc", "prettier", "ninja", "cmake", "ctest"):
    TABLE[_name] = replace(TABLE[_name], alone="--version", runs=(f"{_name} --version",))
TABLE["py.test"] = TABLE["pytest"]
for _name in ("g++", "clang", "clang++", "cc"):
    TABLE[_name] = TABLE["gcc"]


# Lines that build or test the workspace, as people type them. A test judges each of them.


BUILDS = (
    "pytest",
    "pytest -x -q tests",
    "pytest tests/test_a.py::test_b -k 'a and b'",
    "python -m pytest",
    "python3 -m pytest -q",
    "python -m unittest",
    "make",
    "make test -j4",
    "make -C src check",
    "npm test",
    "npm run build",
    "yarn test",
    "pnpm run lint",
    "cargo build --release",
    "cargo test",
    "cargo clippy --all-targets",
    "cargo fmt --check",
    "go build ./...",
    "go test ./... -run X -v",
    "go vet ./...",
    "mvn -q test",
    "gradle build",
    "./gradlew test",
    "ruff check .",
    "black --check .",
    "mypy src",
    "flake8 src",
    "eslint src --ext .ts",
    "tsc --noEmit",
    "prettier --check src",
    "jest",
    "vitest --run",
    "cmake --build build",
    "ninja -C src",
    "ctest --output-on-failure",
    "tox -e py311",
    "dotnet test",
    "mix test",
    "bundle exec rspec",
    "rake test",
    "phpunit --filter x",
    "uv run pytest",
    "./manage.py test",
    "python manage.py test app",
    "npx --no-install jest",
    "cargo tree",
    "poetry run pytest -q",
    "timeout 60 pytest",
    "CI=1 npm test",
    ".venv/bin/pytest -q",
    "node_modules/.bin/jest",
    "python -m mypy src",
    "ruff format --check src && pytest",
    "cd src && make",
    "pytest | tail -20",
    "pytest 2>&1 | grep -i fail",
)
