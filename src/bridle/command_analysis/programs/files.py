"""Programs that look at files and folders, and programs that change them."""

from msgspec.structs import replace

from bridle.command_analysis import checks
from bridle.command_analysis.argv import Check, Program
from bridle.policy import Does

_FIND_TESTS = (
    "-H -P -name= -iname= -path= -ipath= -wholename= -iwholename= -regex= -iregex= -regextype= "
    "-type= -xtype= -size= -empty -mtime= -atime= -ctime= -mmin= -amin= -cmin= -newer=read "
    "-anewer=read -cnewer=read -newermt= -newerct= -newerat= -perm= -user= -group= -uid= -gid= "
    "-nouser -nogroup -links= -inum= -samefile=read -lname= -ilname= -readable -writable "
    "-executable -true -false -maxdepth= -mindepth= -depth -d -xdev -mount -daystart "
    "-noleaf -warn -nowarn -ignore_readdir_race -not -a -and -o -or -print -print0 -printf= -ls "
    "-fprint=write -fprint0=write -fls=write -prune -quit -used= -fstype= -context="
)
_FD = (
    "-H -I -u -s -i -g -F -a -l -p -0 -q -1 -t= -e= -E= -d= -c= -j= -S= --hidden --no-ignore "
    "--no-ignore-vcs --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings "
    "--absolute-path --list-details --full-path --print0 --max-depth= --min-depth= --exact-depth= "
    "--prune --type= --extension= --exclude= --size= --changed-within= --changed-before= --color= "
    "--threads= --max-results= --quiet --strip-cwd-prefix --max-one-result"
)
_LS = (
    "-a -A -b -B -c -C -d -D -f -F -g -G -h -H -i -I= -k -l -m -n -N -o -p -q -Q -r -R -s -S "
    "-t -T= -u -U -v -w= -x -X -Z -1 --all --almost-all --author --escape --block-size= "
    "--ignore-backups --color? --directory --classify? --file-type --format= --full-time "
    "--group-directories-first --no-group --human-readable --si --hide= --hyperlink? "
    "--indicator-style= --inode --ignore= --kibibytes --numeric-uid-gid --literal "
    "--hide-control-chars --show-control-chars --quote-name --quoting-style= --reverse "
    "--recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero "
    "--version --help"
)

TABLE = {
    "ls": Program(
        "reads",
        _LS,
        "look*",
        runs=(
            "ls",
            "ls -la",
            "ls -lah src",
            "ls -1 src tests",
            "ls -ltr --color=never",
            "ls -R src",
            "/bin/ls -l",
            "ls -- src",
            "ls *.py",
            "ls -l .env",
            "ls -d */",
            "ls --group-directories-first -l",
        ),
        asks=(
            "ls -RL",
            "echo ../*",
            "ls /etc",
            "ls ~/.ssh",
            "ls --made-up",
            "ls ..",
            "ls $HOME",
            "ls --col=always",
        ),
    ),
    "find": Program(
        "reads",
        _FIND_TESTS,
        "start*",
        single_dash=True,
        runs=(
            "find . -name '*.py'",
            "find src -type f -name '*.ts' -not -path '*/node_modules/*'",
            r"find . \( -name a -o -name b \) -print",
            "find . -maxdepth 2 -type d",
            "find . -newer README.md -size +10k -printf '%p\\n'",
            "find src ! -name '*.pyc'",
            r"find . -name '*.py' -exec grep -l import {} \;",
            "find . -type f -empty",
            "find src -name '*.py' -exec wc -l {} +",
            "find . -mtime -1 -print0",
        ),
        asks=(
            "find -L . -name x",
            "find . -follow",
            "find / -name x",
            "find . -delete",
            r"find . -exec rm {} \;",
            "find . -fprint out",
            "find . -fprintf out %p",
            "find . -fls out",
            "find -- . -fprint out",
            "find . -- -fprint out",
            r"find . -ok cat {} \; -delete",
            r"find . -name '*.py' -exec sh -c 'cat {}' \;",
            "find ~ -type f",
            "find . -files0-from list",
            r"find . -execdir ./x {} \;",
            r"find src -execdir git status \;",
            r"find src -name a -execdir cat {} \;",
            r"find . -name 's*' -exec git -C {} status \;",
            r"find . -name 's*' -exec env git -C {} log \;",
        ),
    ),
    "fd": Program(
        "reads",
        _FD,
        "text read*",
        runs=("fd '\\.py$'", "fd -e py test src", "fd -H config"),
        asks=("fd -x rm", "fd -X rm -rf", "fd --exec-batch rm", "fd x /etc"),
    ),
    "tree": Program(
        "reads",
        "-a -d -f -i -L= -o=write -P= -I= -p -s -h -u -g -D -t -r -v -C -n -F -J -X -N -q "
        "--noreport --dirsfirst --filesfirst --gitignore --du --prune --filelimit= --charset= "
        "--inodes --si --sort= --metafirst --ignore-case --matchdirs --timefmt= --version --help",
        "look*",
        no_bundles=True,
        runs=("tree", "tree -L 2", "tree -a -I 'node_modules|.git' src", "tree --gitignore -d"),
        asks=(
            "tree -o out.txt",
            "tree /etc",
            "tree -R -H x",
            "tree -Po '*' out.txt",
            "tree -Lo 2 out.txt",
            "tree -ao out.txt",
        ),
    ),
    "stat": Program(
        "reads",
        "-L -f -c= -t -x -n -F -l -r -s --dereference --file-system --format= --printf= --terse "
        "--cached= --version --help",
        "look*",
        runs=("stat README.md", "stat -c '%s %n' src", "stat --format=%y README.md"),
        asks=("stat /etc/shadow", "stat --bogus x"),
    ),
    "du": Program(
        "reads",
        "-0 -a -b -c -d= -D -h -H -k -l -m -P -s -S -t= -x -X=read --all --apparent-size "
        "--block-size= --bytes --total --dereference-args --max-depth= --human-readable --inodes "
        "--count-links --null --separate-dirs --si --summarize --threshold= --time? "
        "--time-style= --exclude-from=read --exclude= --one-file-system --version --help",
        "look*",
        runs=("du -sh .", "du -h --max-depth=1", "du -sh src tests", "du -a src"),
        asks=("du -L", "du -sh /", "du --files0-from=list", "du -sh ~"),
    ),
    "df": Program(
        "reads",
        "-a -h -H -i -k -l -P -T -t= -x= -B= --all --block-size= --human-readable --si --inodes "
        "--local --portability --total --type= --exclude-type= --print-type --output? --sync "
        "--no-sync --version --help",
        "text*",
        runs=("df -h", "df -h .", "df -hT /"),
        asks=("df --bogus",),
    ),
    "file": Program(
        "reads",
        "-b -i -h -k -N -n -p -r -v -0 --brief --mime --mime-type --mime-encoding "
        "--no-dereference --keep-going --no-pad --raw --version --help",
        "look*",
        runs=("file README.md", "file -b --mime-type src/app.py", "file *"),
        asks=("file -C -m magic", "file -f names", "file -z x.gz", "file /etc/shadow"),
    ),
    "realpath": Program(
        "reads",
        "-e -m -s -q -z -L -P --canonicalize-existing --canonicalize-missing --logical --physical "
        "--quiet --relative-to=read --relative-base=read --strip --no-symlinks --zero",
        "look*",
        runs=("realpath src", "realpath -m x/y"),
        asks=("realpath /etc/alternatives",),
    ),
    "readlink": Program(
        "reads",
        "-f -e -m -n -q -s -v -z --canonicalize --no-newline --quiet --silent --verbose --zero",
        "look*",
        runs=("readlink -f src",),
        asks=("readlink /proc/self/exe",),
    ),
    "basename": Program(
        "reads",
        "-a -s= -z --multiple --suffix= --zero",
        "text*",
        runs=("basename src/app.py .py",),
        asks=("basename --bogus x",),
    ),
    "dirname": Program(
        "reads", "-z --zero", "text*", runs=("dirname src/app.py",), asks=("dirname -q x",)
    ),
    "cksum": Program(
        "reads",
        "-a= -l= -z --algorithm= --tag --untagged --length= --zero",
        "read*",
        runs=("cksum README.md",),
        asks=("cksum /etc/hosts",),
    ),
    **{
        f"{name}sum": Program(
            "reads",
            "-b -t -z -l= --binary --tag --text --zero --length=",
            "read*",
            runs=(f"{name}sum README.md",),
            asks=(f"{name}sum -c list", f"{name}sum /etc/passwd"),
        )
        for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "b2")
    },
    "shasum": Program(
        "reads",
        "-a= -b -t -p --algorithm= --binary --text --portable",
        "read*",
        runs=("shasum -a 256 README.md",),
        asks=("shasum -c list",),
    ),
    "tokei": Program(
        "reads",
        "-C -f -e= -o= -s= -t= --compact --files --exclude= --output= --sort=",
        "read*",
        runs=("tokei src",),
        asks=("tokei ~",),
    ),
}
TABLE["fdfind"] = TABLE["fd"]
TABLE["gfind"] = TABLE["find"]


# Programs that change files. What is written or deleted is the reason to ask.


def _file_change(
    operands: str,
    flags: str = "",
    reason: str = "",
    asks: tuple[str, ...] = (),
    check: Check | None = None,
    runs: tuple[str, ...] = (),
) -> Program:
    does: Does = "reads" if runs else "changes"
    return Program(does, flags, operands, reason, runs, asks, check=check)


_COPY = (
    "-a -b -d -f -i -H -l -L -n -P -p -r -R -s -S= -t=write -T -u -v -x -Z --archive --backup? "
    "--force --interactive --no-clobber --recursive --target-directory=write --update? --verbose "
    "--preserve? --no-preserve= --parents --link --symbolic-link --reflink? --sparse= --suffix="
)

TABLE |= {
    "rm": _file_change(
        "delete*",
        "-r -R -f -i -I -d -v --recursive --force --dir --verbose --interactive? "
        "--one-file-system --preserve-root? --no-preserve-root",
        asks=("rm x", "rm -rf build", "rm -r ./src/*"),
    ),
    "rmdir": _file_change(
        "delete*", "-p -v --parents --verbose --ignore-fail-on-non-empty", asks=("rmdir x",)
    ),
    "unlink": _file_change("delete*", asks=("unlink x",)),
    "shred": _file_change("delete*", "-f -n= -s= -u -v -x -z --remove?", asks=("shred -u x",)),
    "trash": _file_change("delete*", asks=("trash x",)),
    "srm": _file_change("delete*", "-r", asks=("srm x",)),
    "mkdir": _file_change(
        "write*", "-p -v -m= -Z --parents --mode= --verbose", asks=("mkdir -p a/b", "mkdir x && ls")
    ),
    "touch": _file_change(
        "write*", "-a -c -m -d= -r=read -t= --no-create --date= --reference=read", asks=("touch x",)
    ),
    "mktemp": _file_change(
        "write*",
        "-d -q -u -t -p=write --directory --suffix= --tmpdir?",
        "makes a temporary file",
        asks=("mktemp -d",),
    ),
    "cp": _file_change("read* write", _COPY, asks=("cp a b", "cp -r src copy", "cp /etc/passwd x")),
    "mv": _file_change(
        "moved* write",
        "-b -f -i -n -S= -t=write -T -u -v --backup? --force --no-clobber "
        "--target-directory=write --update? --verbose",
        asks=("mv a b",),
    ),
    "install": _file_change(
        "read* write",
        "-b -c -C -d -D -g= -m= -o= -p -s -t=write -T -v --directory --mode= "
        "--target-directory=write",
        asks=("install -m 755 a b",),
    ),
    "ln": _file_change(
        "linked* write",
        "-s -f -n -r -T -v -b -i -L -P -t=write --symbolic --force --no-dereference --relative "
        "--target-directory=write",
        asks=("ln -s a b",),
    ),
    "link": _file_change("linked write", asks=("link a b",)),
    "chmod": _file_change(
        "text write*",
        "-R -v -c -f -x -w -r --recursive --reference=read --verbose",
        asks=("chmod +x run.sh", "chmod -R 755 src"),
    ),
    "chown": _file_change(
        "text write*",
        "-R -h -v -c -f -H -L -P --recursive --reference=read --from=",
        asks=("chown me x",),
    ),
    "chgrp": _file_change("text write*", "-R -h -v -c -f --recursive", asks=("chgrp me x",)),
    "chattr": _file_change("text write*", "-R -V -f", asks=("chattr +i x",)),
    "setfacl": _file_change("write*", "-R -m= -x= -b -k -d", asks=("setfacl -m u:me:r x",)),
    "tee": _file_change(
        "write*",
        "-a -i -p --append --ignore-interrupts --output-error?",
        asks=("tee out", "ls | tee out.txt", "ls | tee -a out.txt"),
    ),
    "sponge": _file_change("write", "-a", asks=("sponge x",)),
    "truncate": _file_change(
        "write*",
        "-c -o -r=read -s= --no-create --size= --reference=read",
        asks=("truncate -s 0 x",),
    ),
    "fallocate": _file_change("write*", "-l= -o= -n -d -p -z", asks=("fallocate -l 1G x",)),
    "dd": _file_change("text*", "*", check=checks.dd, asks=("dd if=a of=b",)),
    "split": _file_change(
        "read write",
        "-a= -b= -C= -d -l= -n= -x --filter= --numeric-suffixes?",
        asks=("split -l 10 x", "split --filter=sh x"),
    ),
    "csplit": _file_change(
        "read text*", "-f= -k -n= -s -z -b=", "writes pieces of a file", asks=("csplit x 10",)
    ),
    "patch": _file_change(
        "write read",
        "-p= -i=read -o=write -R -N -s -d=cd --dry-run -b -E",
        asks=("patch -p1 < x.diff",),
    ),
    "tar": _file_change(
        "text*",
        "-c -x -t -r -u -z -j -J -v -k -p -P -O -h -f= -C=write --exclude= --list --extract "
        "--create --gzip --verbose --strip-components= --directory=write --file= -a",
        check=checks.tar,
        runs=("tar tf a.tar", "tar -tzf a.tgz", "tar -t -v -f a.tar src", "tar tvf a.tar | head"),
        asks=(
            "tar xf a.tar",
            "tar czf a.tgz src",
            "tar tf host:a.tar",
            "tar -tf a.tar -I ./x",
            "tar tf a.tar --to-command=./x",
            "tar tf /etc/a.tar",
            "tar t",
            "tar --checkpoint=1 --checkpoint-action=exec=x cf a b",
        ),
    ),
    "zip": _file_change("write read*", "-r -q -9 -u -m -j -x= -T", asks=("zip -r a.zip src",)),
    "unzip": _file_change(
        "read text*",
        "-o -n -q -l -v -t -p -j -d=write -x=",
        check=checks.unzip,
        runs=("unzip -l a.zip", "unzip -p a.zip x"),
        asks=(
            "unzip a.zip",
            "unzip -d /etc a.zip",
            "unzip -o -q a.zip",
            "unzip a.zip '*' -p",
            "unzip a.zip -l",
            "unzip -l -d /etc a.zip",
        ),
    ),
    "gzip": _file_change("write*", "-d -k -f -c -r -l -t -v -9 -1", asks=("gzip x",)),
    "gunzip": _file_change("write*", "-k -f -c -r", asks=("gunzip x.gz",)),
    "bzip2": _file_change("write*", "-d -k -f -c", asks=("bzip2 x",)),
    "xz": _file_change("write*", "-d -k -f -c -T= -9", asks=("xz x",)),
    "zstd": _file_change("write*", "-d -k -f -c -o=write -T= -19", asks=("zstd x",)),
    "7z": _file_change("text*", "", "packs or unpacks files", asks=("7z x a.7z",)),
    "rename": _file_change("text write*", "", asks=("rename s/a/b/ x",)),
    "ed": _file_change("write", "-s", asks=("ed x",)),
    "ex": _file_change("write*", "-s -c=", asks=("ex x",)),
    "vi": _file_change("write*", "-e -s -c=", asks=("vi x",)),
    "vim": _file_change("write*", "-e -s -c= -u=", asks=("vim x",)),
    "nano": _file_change("write*", "", asks=("nano x",)),
    "emacs": _file_change("write*", "--batch --eval= -Q", asks=("emacs x",)),
    "code": _file_change(
        "read*", "-n -r -w -g -d", "opens an editor", asks=("code .", "code --goto x")
    ),
    "less": _file_change(
        "read*", "-N -S -R -F -X", "may run other programs", asks=("less README.md",)
    ),
    "more": _file_change("read*", "", "may run other programs", asks=("more README.md",)),
    "man": _file_change("text*", "", "may run other programs", asks=("man ls", "man -P ./x ls")),
    "info": _file_change("text*", "", "may run other programs", asks=("info ls",)),
    "kill": _file_change("text*", "", "ends a process", asks=("kill 123", "kill -9 123")),
    "pkill": _file_change("text*", "", "ends processes", asks=("pkill node",)),
    "killall": _file_change("text*", "", "ends processes", asks=("killall node",)),
    "crontab": _file_change("text*", "", "what runs at set times", asks=("crontab -l",)),
    "systemctl": _file_change("text*", "", "services of the machine", asks=("systemctl status x",)),
    "sqlite3": _file_change(
        "write text*", "-header -json -csv -readonly", "runs SQL", asks=("sqlite3 x.db .tables",)
    ),
    "psql": _file_change("text*", "", "runs SQL", asks=("psql -c 'select 1'",)),
    "mysql": _file_change("text*", "", "runs SQL", asks=("mysql -e 'select 1'",)),
    "xargs": _file_change(
        "text*",
        "",
        "runs commands that it reads",
        asks=("xargs rm", "ls | xargs rm -f", "ls | xargs cat", "xargs"),
    ),
    "su": _file_change("text*", "", "runs as another user", asks=("su", "su -c ls", "su root")),
    "sudo": _file_change(
        "text*", "", "runs as another user", asks=("sudo -l", "sudo ls", "sudo -i")
    ),
    "open": _file_change("text*", "", "opens a program", asks=("open x",)),
    "xdg-open": _file_change("text*", "", "opens a program", asks=("xdg-open x",)),
}
TABLE["unzip"] = replace(TABLE["unzip"], flags_first=True)  # then names in the archive
