"""Programs that look at files and folders and print what they see."""

from bridle.command_analysis.argv import Known

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
    "ls": Known(
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
    "find": Known(
        "reads",
        _FIND_TESTS,
        "start*",
        single=True,
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
    "fd": Known(
        "reads",
        _FD,
        "text read*",
        runs=("fd '\\.py$'", "fd -e py test src", "fd -H config"),
        asks=("fd -x rm", "fd -X rm -rf", "fd --exec-batch rm", "fd x /etc"),
    ),
    "tree": Known(
        "reads",
        "-a -d -f -i -L= -o=write -P= -I= -p -s -h -u -g -D -t -r -v -C -n -F -J -X -N -q "
        "--noreport --dirsfirst --filesfirst --gitignore --du --prune --filelimit= --charset= "
        "--inodes --si --sort= --metafirst --ignore-case --matchdirs --timefmt= --version --help",
        "look*",
        apart=True,
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
    "stat": Known(
        "reads",
        "-L -f -c= -t -x -n -F -l -r -s --dereference --file-system --format= --printf= --terse "
        "--cached= --version --help",
        "look*",
        runs=("stat README.md", "stat -c '%s %n' src", "stat --format=%y README.md"),
        asks=("stat /etc/shadow", "stat --bogus x"),
    ),
    "du": Known(
        "reads",
        "-0 -a -b -c -d= -D -h -H -k -l -m -P -s -S -t= -x -X=read --all --apparent-size "
        "--block-size= --bytes --total --dereference-args --max-depth= --human-readable --inodes "
        "--count-links --null --separate-dirs --si --summarize --threshold= --time? "
        "--time-style= --exclude-from=read --exclude= --one-file-system --version --help",
        "look*",
        runs=("du -sh .", "du -h --max-depth=1", "du -sh src tests", "du -a src"),
        asks=("du -L", "du -sh /", "du --files0-from=list", "du -sh ~"),
    ),
    "df": Known(
        "reads",
        "-a -h -H -i -k -l -P -T -t= -x= -B= --all --block-size= --human-readable --si --inodes "
        "--local --portability --total --type= --exclude-type= --print-type --output? --sync "
        "--no-sync --version --help",
        "text*",
        runs=("df -h", "df -h .", "df -hT /"),
        asks=("df --bogus",),
    ),
    "file": Known(
        "reads",
        "-b -i -h -k -N -n -p -r -v -0 --brief --mime --mime-type --mime-encoding "
        "--no-dereference --keep-going --no-pad --raw --version --help",
        "look*",
        runs=("file README.md", "file -b --mime-type src/app.py", "file *"),
        asks=("file -C -m magic", "file -f names", "file -z x.gz", "file /etc/shadow"),
    ),
    "realpath": Known(
        "reads",
        "-e -m -s -q -z -L -P --canonicalize-existing --canonicalize-missing --logical --physical "
        "--quiet --relative-to=read --relative-base=read --strip --no-symlinks --zero",
        "look*",
        runs=("realpath src", "realpath -m x/y"),
        asks=("realpath /etc/alternatives",),
    ),
    "readlink": Known(
        "reads",
        "-f -e -m -n -q -s -v -z --canonicalize --no-newline --quiet --silent --verbose --zero",
        "look*",
        runs=("readlink -f src",),
        asks=("readlink /proc/self/exe",),
    ),
    "basename": Known(
        "reads",
        "-a -s= -z --multiple --suffix= --zero",
        "text*",
        runs=("basename src/app.py .py",),
        asks=("basename --bogus x",),
    ),
    "dirname": Known(
        "reads", "-z --zero", "text*", runs=("dirname src/app.py",), asks=("dirname -q x",)
    ),
    "cksum": Known(
        "reads",
        "-a= -l= -z --algorithm= --tag --untagged --length= --zero",
        "read*",
        runs=("cksum README.md",),
        asks=("cksum /etc/hosts",),
    ),
    **{
        f"{name}sum": Known(
            "reads",
            "-b -t -z -l= --binary --tag --text --zero --length=",
            "read*",
            runs=(f"{name}sum README.md",),
            asks=(f"{name}sum -c list", f"{name}sum /etc/passwd"),
        )
        for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "b2")
    },
    "shasum": Known(
        "reads",
        "-a= -b -t -p --algorithm= --binary --text --portable",
        "read*",
        runs=("shasum -a 256 README.md",),
        asks=("shasum -c list",),
    ),
    "tokei": Known(
        "reads",
        "-C -f -e= -o= -s= -t= --compact --files --exclude= --output= --sort=",
        "read*",
        runs=("tokei src",),
        asks=("tokei ~",),
    ),
}
TABLE["fdfind"] = TABLE["fd"]
TABLE["gfind"] = TABLE["find"]
