"""git: its commands that only read, if the configuration cannot run programs, and all others."""

from bridle.command_analysis import checks
from bridle.command_analysis.argv import Check, Program

_REVS = (
    "-n= -# --max-count= --skip= --since= --after= --until= --before= --author= --committer= "
    "--grep= --all-match --invert-grep -i --regexp-ignore-case -E -F --extended-regexp "
    "--fixed-strings -P --merges --no-merges --first-parent --all --branches? --tags? --remotes? "
    "--not --reverse --date-order --topo-order --author-date-order --left-right --cherry-pick "
    "--cherry-mark --left-only --right-only --ancestry-path --boundary --follow --graph --oneline "
    "--decorate? --no-decorate --abbrev-commit --no-abbrev-commit --abbrev? --pretty? --format= "
    "--date= --relative-date --parents --children --source --show-pulls --full-history "
    "--simplify-merges --walk-reflogs -g --reflog --count --no-color --color? --encoding= -L= -S= "
    "-G= --pickaxe-all --pickaxe-regex --exclude= --glob= --no-walk? --min-parents= "
    "--max-parents= --log-size"
)
_DIFFS = (
    "-p -u --patch --no-patch -s -U= --unified= --raw --minimal --patience --histogram "
    "--anchored= --diff-algorithm= --stat? --numstat --shortstat --dirstat? --summary --name-only "
    "--output=write "
    "--name-status --patch-with-stat --patch-with-raw --compact-summary -z --color? --no-color "
    "--color-moved? --no-color-moved --color-words? --word-diff? --word-diff-regex= --no-renames "
    "-M? -C? -B? -D --find-renames? --find-copies? --find-copies-harder --break-rewrites? -l= "
    "--diff-filter= -R --relative? --no-relative -a --text -b -w --ignore-space-at-eol "
    "--ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol -I= -W "
    "--function-context --inter-hunk-context= --exit-code --quiet -q --no-ext-diff --no-textconv "
    "--ignore-submodules? --submodule? --src-prefix= --dst-prefix= --no-prefix --full-index "
    "--binary --check --cached --staged --merge-base -m -c --cc --combined-all-paths "
    "--no-indent-heuristic -t -r --root --no-commit-id --stdin"
)
_LOG_FLAGS = f"{_REVS} {_DIFFS}"


def _reader(
    flags: str,
    operands: str = "rev*",
    *,
    check: Check | None = None,
    required_flags: str = "",
    operand_flags: str = "",
) -> Program:
    return Program(
        "reads",
        flags,
        operands,
        check=check,
        required_flags=required_flags,
        operand_flags=operand_flags,
    )


def _change(
    reason: str, operands: str = "text*", flags: str = "", *, network: bool = False
) -> Program:
    return Program("changes", flags, operands, reason, network=network)


_NET = "goes out over the network"
_WORK = "changes files of the working tree"
_HISTORY = "changes the history of the repository"

_SUBCOMMANDS = {
    "status": _reader(
        "-s -b -u? -z -v --short --branch --porcelain? --long --verbose --untracked-files? "
        "--ignored? --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind "
        "--renames --no-renames --find-renames? --show-stash"
    ),
    "log": _reader(
        _LOG_FLAGS,
        check=checks.git_format,
    ),
    "whatchanged": _reader(
        _LOG_FLAGS,
        check=checks.git_format,
    ),
    "shortlog": _reader(
        f"{_REVS} -s -n -e -c -w? --summary --numbered --email --group=", check=checks.git_format
    ),
    "diff": _reader(_DIFFS),
    "show": _reader(
        _LOG_FLAGS,
        check=checks.git_format,
    ),
    "diff-tree": _reader(
        _LOG_FLAGS,
        check=checks.git_format,
    ),
    "diff-index": _reader(_DIFFS),
    "diff-files": _reader(_DIFFS),
    "range-diff": _reader(_DIFFS),
    "rev-list": _reader(
        _LOG_FLAGS + " --objects --disk-usage? --header --timestamp", check=checks.git_format
    ),
    "rev-parse": _reader(
        "--show-toplevel --git-dir --abbrev-ref? --short? --verify -q --quiet "
        "--is-inside-work-tree --is-inside-git-dir --is-bare-repository --show-prefix --show-cdup "
        "--absolute-git-dir --git-common-dir --symbolic --symbolic-full-name --all --branches? "
        "--tags? --remotes? --show-superproject-working-tree --is-shallow-repository --sq --not "
        "--flags --no-flags --revs-only --no-revs --default="
    ),
    "blame": _reader(
        "-L= -l -t -s -e -w -M? -C? -f -n -p -c -b --root --show-stats --show-name --show-number "
        "--show-email --porcelain --line-porcelain --incremental --since= --date= --abbrev= "
        "--ignore-rev= --reverse --first-parent --color-lines --color-by-age"
    ),
    "annotate": _reader("-L= -l -t -s -e -w"),
    "ls-files": _reader(
        "-c -d -m -o -i -s -u -k -t -v -f -z -x= --cached --deleted --modified --others --ignored "
        "--stage --directory --no-empty-directory --unmerged --killed --exclude= "
        "--exclude-standard --error-unmatch --full-name --abbrev? --eol --deduplicate --format="
    ),
    "ls-tree": _reader(
        "-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev? "
        "--object-only --format="
    ),
    "grep": _reader(
        "-i -v -w -x -n -c -l -L -h -H -o -q -E -F -G -P -e= -A= -B= -C= -W -p -I -a -z -r -m= -# "
        "--ignore-case --invert-match --word-regexp --line-number --count --files-with-matches "
        "--name-only --files-without-match --only-matching --quiet --extended-regexp "
        "--fixed-strings --perl-regexp --basic-regexp --and --or --not --all-match --cached "
        "--max-depth= --heading --break --color? --no-color --show-function --function-context "
        "--column --full-name --threads= --after-context= --before-context= --context= --null "
        "--max-count=",
        "text rev*",
        operand_flags="-e",
    ),
    "cat-file": _reader(
        "-p -t -s -e --batch-check? --batch-all-objects --unordered --follow-symlinks"
    ),
    "describe": _reader(
        "--all --tags --long --always --abbrev= --match= --exclude= --contains --exact-match "
        "--dirty? --broken? --candidates= --first-parent"
    ),
    "name-rev": _reader("--tags --refs= --all --name-only --always"),
    "merge-base": _reader("-a --all --octopus --is-ancestor --independent --fork-point"),
    "for-each-ref": _reader(
        "--count= --sort= --format= --points-at= --merged? --no-merged? --contains? "
        "--no-contains? --color? --ignore-case",
        check=checks.git_format,
    ),
    "show-ref": _reader(
        "--head --heads --branches --tags -d --dereference -s --hash? --verify -q --abbrev?"
    ),
    "show-branch": _reader("-a -r --all --remotes --current --list --sha1-name"),
    "cherry": _reader("-v --abbrev?"),
    "count-objects": _reader("-v -H --verbose --human-readable", ""),
    "check-ignore": _reader("-q -v -z -n --quiet --verbose --non-matching --no-index --stdin"),
    "check-attr": _reader("-a --all --cached -z --stdin"),
    "symbolic-ref": _reader("-q --short --quiet", check=checks.git_symbolic_ref),
    "version": _reader("--build-options", ""),
    "branch": _reader(
        "-a -r -v -q -i --all --remotes --verbose --list --show-current --sort= --color? "
        "--no-color --column? --no-column --abbrev? --contains? --no-contains? --merged? "
        "--no-merged? --points-at= --format= --ignore-case",
        required_flags="--list --contains --no-contains --merged --no-merged",
        check=checks.git_format,
    ),
    "tag": _reader(
        "-l -n? -i --list --sort= --format= --contains? --no-contains? --merged? --no-merged? "
        "--points-at= --column? --color? --ignore-case",
        required_flags="-l --list --contains --no-contains --merged --no-merged --points-at",
        check=checks.git_format,
    ),
    "remote": Program(
        "reads",
        "-v --verbose",
        subcommands={
            "get-url": _reader("--all --push"),
            "add": _change("adds a remote to the repository"),
            "show": _change(_NET, network=True),
            "update": _change(_NET, network=True),
            "prune": _change(_NET, network=True),
        },
    ),
    "stash": Program(
        "changes",
        "",
        "text*",
        "puts changes aside",
        subcommands={
            "list": _reader(
                _LOG_FLAGS,
                check=checks.git_format,
            ),
            "show": _reader(_DIFFS + " --include-untracked --only-untracked"),
        },
    ),
    "worktree": Program(
        "changes", subcommands={"list": _reader("-v -z --porcelain --verbose", "")}
    ),
    "reflog": Program(
        "reads",
        _LOG_FLAGS,
        "rev*",
        check=checks.git_format,
        subcommands={
            "show": _reader(
                _LOG_FLAGS,
                check=checks.git_format,
            ),
            "exists": _reader(""),
            "HEAD": _reader(
                _LOG_FLAGS,
                check=checks.git_format,
            ),
        },
    ),
    "notes": Program("changes", subcommands={"list": _reader(""), "show": _reader("")}),
    "bisect": Program(
        "changes", reason=_WORK, subcommands={"log": _reader(""), "view": _change(_WORK)}
    ),
    "submodule": Program(
        "changes",
        reason=_NET,
        network=True,
        subcommands={"update": _change(_NET, network=True), "add": _change(_NET, network=True)},
    ),
    "config": Program(
        "reads",
        "-l --list --get --get-all --get-regexp --show-origin --show-scope --name-only -z --local "
        "--global --system --worktree --type= --bool --int --path --default= --null --includes "
        "--no-includes --unset --add --replace-all --unset-all",
        "text*",
        check=checks.git_config,
    ),
    "add": _change("puts changes into the index", "read*", "-A -u -v -n -f -p -N --all --update"),
    "commit": _change(
        "makes a commit",
        "read*",
        "-m= -a -v -s -n -q -F=read -C= -c= --message= --amend --all --no-edit --no-verify "
        "--signoff --allow-empty --author= --date= --fixup= --file=read",
    ),
    "checkout": _change(_WORK),
    "switch": _change(_WORK),
    "restore": _change(_WORK, "write*", "-s= -S -W -p -q --source= --staged --worktree"),
    "reset": _change("moves the branch, and with --hard throws changes away"),
    "rm": _change("deletes files", "write*", "-r -f -n -q --cached --force --ignore-unmatch"),
    "mv": _change("moves files", "write*", "-f -k -n -v"),
    "clean": _change("deletes files that git does not know"),
    "merge": _change(_HISTORY),
    "rebase": _change(_HISTORY),
    "cherry-pick": _change(_HISTORY),
    "revert": _change(_HISTORY),
    "am": _change(_HISTORY),
    "filter-branch": _change(_HISTORY),
    "apply": _reader(
        "--check --stat --numstat --summary --index --cached -3 --3way -R --reverse -v -q -z "
        "--verbose --quiet -p= -C= --directory= --exclude= --include= --recount --apply --reject "
        "--unidiff-zero --whitespace= --ignore-whitespace --ignore-space-change --allow-empty",
        "read*",
        check=checks.git_apply,
    ),
    "init": _change("makes a repository", "write*"),
    "gc": _change("tidies the repository"),
    "prune": _change("tidies the repository"),
    "fetch": _change(_NET, network=True),
    "pull": _change(_NET, network=True),
    "ls-remote": _change(_NET, network=True),
    "push": _change("sends commits over the network", network=True),
    "clone": _change(
        "fetches a repository over the network",
        "host write",
        "-b= --branch= --depth= --single-branch --recursive -q --bare --mirror",
        network=True,
    ),
}

TABLE = {
    "git": Program(
        "reads",
        "-C=cd -c=config --config-env=config --git-dir=config --work-tree=config "
        "--exec-path=config --namespace=config --no-pager --no-optional-locks --literal-pathspecs "
        "--glob-pathspecs --noglob-pathspecs --icase-pathspecs --version --no-replace-objects -P",
        subcommands=_SUBCOMMANDS,
        check=checks.git_repository,
        harmless_alone="--version -v",
        runs=(
            "git status",
            "git status -sb",
            "git log --oneline -10",
            "git log -p -- src/app.py",
            "git diff",
            "git diff --cached --stat",
            "git apply --check data.csv",
            "git apply --stat --summary data.csv",
            "git diff HEAD~1 -- src",
            "git show HEAD",
            "git show HEAD:src/app.py",
            "git branch",
            "git branch -a",
            "git branch -vv",
            "git branch --show-current",
            "git branch --list 'a*'",
            "git rev-parse HEAD",
            "git rev-parse --abbrev-ref HEAD",
            "git blame -L 1,10 src/app.py",
            "git ls-files",
            "git remote -v",
            "git tag -l",
            "git tag --contains HEAD",
            "git tag",
            "git stash list",
            "git describe --tags",
            "git shortlog -sn HEAD",
            "git shortlog -sn",
            "git reflog",
            "git cat-file -p HEAD",
            "git config --list",
            "git config --get user.name",
            "git config user.email",
            "git config list --show-origin",
            "git worktree list",
            "git -C src status",
            "git --no-pager diff main...HEAD",
            "git grep -n foo",
            "git ls-tree -r HEAD --name-only",
            "git log --since='2 weeks ago' --author=me",
            "git diff --name-only origin/main",
            "git merge-base main HEAD",
            "git --version",
            "git rev-list --count HEAD",
            "git stash show -p",
            "git log --graph --all --oneline",
        ),
        asks=(
            "git -c core.pager=x log",
            "git -c alias.x='!id' x",
            "git push",
            "git push --force",
            "git commit -m x",
            "git add .",
            "git checkout main",
            "git reset --hard",
            "git clean -fdx",
            "git branch new",
            "git branch -D x",
            "git branch -l x",
            "git config edit",
            "git -c a=b push x",
            "git tag v1",
            "git tag -d v1",
            "git diff --ext-diff",
            "git log --textconv",
            "git diff --output=x",
            "git diff --out=x",
            "git grep -Oless foo",
            "git grep --open-files-in-pager=x foo",
            "git fetch",
            "git log -O/x",
            "git config user.name x",
            "git config core.hooksPath x",
            "git config user.name --get x",
            "git config user.name --list",
            "git config user.name --type x",
            "git config core.pager '--default=x; id'",
            "git -C /etc status",
            "git --git-dir=/x status",
            "git --exec-path=/x status",
            "git diff --no-index a /etc/passwd",
            "git diff /dev/null /etc/passwd",
            "git foo",
            "git show HEAD:.env",
            "git show :0:.env",
            "git show :.env",
            "git show 'HEAD@{2030-01-01 10:00}:.env'",
            "git show HEAD -- ':(top).env'",
            "git log -p -- ':/.env'",
            "git log --help",
            "git shortlog --format=%G? HEAD",
            "git stash list --format=%G?",
            "git reflog --format=%G?",
            "git diff-tree --pretty=%G? HEAD",
            "git stash",
            "git stash pop",
            "git log --format=%G? -1",
            "git --paginate log",
            "git -p log",
            "git difftool",
            "git bisect run ./x",
            "git rebase -x ./x main",
            "git submodule foreach id",
            "git remote add x y",
            "git symbolic-ref HEAD refs/heads/x",
            "git apply data.csv",
            "git apply --index data.csv",
            "git apply --stat --apply data.csv",
            "git apply --check --build-fake-ancestor=x data.csv",
            "git archive -o x HEAD",
            "git help log",
            "git clone https://example.com/x",
            "git reflog expire --all",
            "git worktree add x",
        ),
    ),
    "gh": Program(
        "changes",
        "",
        "text*",
        "goes out to GitHub over the network",
        network=True,
        asks=("gh pr list", "gh api /user"),
        harmless_alone="--version",
    ),
    "hg": Program("changes", "", "text*", asks=("hg status",)),
    "svn": Program("changes", "", "text*", harmless_alone="--version", asks=("svn status",)),
}
