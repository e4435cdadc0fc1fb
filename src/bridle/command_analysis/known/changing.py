"""Programs that change files: what they would write or delete is in the reason."""

from msgspec.structs import replace

from bridle.command_analysis.argv import Known
from bridle.policy import Does


def _acts(
    operands: str,
    flags: str = "",
    reason: str = "",
    asks: tuple[str, ...] = (),
    check: str = "",
    runs: tuple[str, ...] = (),
) -> Known:
    does: Does = "reads" if runs else "changes"
    return Known(does, flags, operands, reason, runs, asks, check=check)


_COPY = (
    "-a -b -d -f -i -H -l -L -n -P -p -r -R -s -S= -t=write -T -u -v -x -Z --archive --backup? "
    "--force --interactive --no-clobber --recursive --target-directory=write --update? --verbose "
    "--preserve? --no-preserve= --parents --link --symbolic-link --reflink? --sparse= --suffix="
)

TABLE = {
    "rm": _acts(
        "delete*",
        "-r -R -f -i -I -d -v --recursive --force --dir --verbose --interactive? "
        "--one-file-system --preserve-root? --no-preserve-root",
        asks=("rm x", "rm -rf build", "rm -r ./src/*"),
    ),
    "rmdir": _acts(
        "delete*", "-p -v --parents --verbose --ignore-fail-on-non-empty", asks=("rmdir x",)
    ),
    "unlink": _acts("delete*", asks=("unlink x",)),
    "shred": _acts("delete*", "-f -n= -s= -u -v -x -z --remove?", asks=("shred -u x",)),
    "trash": _acts("delete*", asks=("trash x",)),
    "srm": _acts("delete*", "-r", asks=("srm x",)),
    "mkdir": _acts(
        "write*", "-p -v -m= -Z --parents --mode= --verbose", asks=("mkdir -p a/b", "mkdir x && ls")
    ),
    "touch": _acts(
        "write*", "-a -c -m -d= -r=read -t= --no-create --date= --reference=read", asks=("touch x",)
    ),
    "mktemp": _acts(
        "write*",
        "-d -q -u -t -p=write --directory --suffix= --tmpdir?",
        "makes a temporary file",
        asks=("mktemp -d",),
    ),
    "cp": _acts("read* write", _COPY, asks=("cp a b", "cp -r src copy", "cp /etc/passwd x")),
    "mv": _acts(
        "moved* write",
        "-b -f -i -n -S= -t=write -T -u -v --backup? --force --no-clobber "
        "--target-directory=write --update? --verbose",
        asks=("mv a b",),
    ),
    "install": _acts(
        "read* write",
        "-b -c -C -d -D -g= -m= -o= -p -s -t=write -T -v --directory --mode= "
        "--target-directory=write",
        asks=("install -m 755 a b",),
    ),
    "ln": _acts(
        "linked* write",
        "-s -f -n -r -T -v -b -i -L -P -t=write --symbolic --force --no-dereference --relative "
        "--target-directory=write",
        asks=("ln -s a b",),
    ),
    "link": _acts("linked write", asks=("link a b",)),
    "chmod": _acts(
        "text write*",
        "-R -v -c -f -x -w -r --recursive --reference=read --verbose",
        asks=("chmod +x run.sh", "chmod -R 755 src"),
    ),
    "chown": _acts(
        "text write*",
        "-R -h -v -c -f -H -L -P --recursive --reference=read --from=",
        asks=("chown me x",),
    ),
    "chgrp": _acts("text write*", "-R -h -v -c -f --recursive", asks=("chgrp me x",)),
    "chattr": _acts("text write*", "-R -V -f", asks=("chattr +i x",)),
    "setfacl": _acts("write*", "-R -m= -x= -b -k -d", asks=("setfacl -m u:me:r x",)),
    "tee": _acts(
        "write*",
        "-a -i -p --append --ignore-interrupts --output-error?",
        asks=("tee out", "ls | tee out.txt", "ls | tee -a out.txt"),
    ),
    "sponge": _acts("write", "-a", asks=("sponge x",)),
    "truncate": _acts(
        "write*",
        "-c -o -r=read -s= --no-create --size= --reference=read",
        asks=("truncate -s 0 x",),
    ),
    "fallocate": _acts("write*", "-l= -o= -n -d -p -z", asks=("fallocate -l 1G x",)),
    "dd": _acts("text*", "*", check="dd", asks=("dd if=a of=b",)),
    "split": _acts(
        "read write",
        "-a= -b= -C= -d -l= -n= -x --filter= --numeric-suffixes?",
        asks=("split -l 10 x", "split --filter=sh x"),
    ),
    "csplit": _acts(
        "read text*", "-f= -k -n= -s -z -b=", "writes pieces of a file", asks=("csplit x 10",)
    ),
    "patch": _acts(
        "write read",
        "-p= -i=read -o=write -R -N -s -d=cd --dry-run -b -E",
        asks=("patch -p1 < x.diff",),
    ),
    "tar": _acts(
        "text*",
        "-c -x -t -r -u -z -j -J -v -k -p -P -O -h -f= -C=write --exclude= --list --extract "
        "--create --gzip --verbose --strip-components= --directory=write --file= -a",
        check="tar",
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
    "zip": _acts("write read*", "-r -q -9 -u -m -j -x= -T", asks=("zip -r a.zip src",)),
    "unzip": _acts(
        "read text*",
        "-o -n -q -l -v -t -p -j -d=write -x=",
        check="unzip",
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
    "gzip": _acts("write*", "-d -k -f -c -r -l -t -v -9 -1", asks=("gzip x",)),
    "gunzip": _acts("write*", "-k -f -c -r", asks=("gunzip x.gz",)),
    "bzip2": _acts("write*", "-d -k -f -c", asks=("bzip2 x",)),
    "xz": _acts("write*", "-d -k -f -c -T= -9", asks=("xz x",)),
    "zstd": _acts("write*", "-d -k -f -c -o=write -T= -19", asks=("zstd x",)),
    "7z": _acts("text*", "", "packs or unpacks files", asks=("7z x a.7z",)),
    "rename": _acts("text write*", "", asks=("rename s/a/b/ x",)),
    "ed": _acts("write", "-s", asks=("ed x",)),
    "ex": _acts("write*", "-s -c=", asks=("ex x",)),
    "vi": _acts("write*", "-e -s -c=", asks=("vi x",)),
    "vim": _acts("write*", "-e -s -c= -u=", asks=("vim x",)),
    "nano": _acts("write*", "", asks=("nano x",)),
    "emacs": _acts("write*", "--batch --eval= -Q", asks=("emacs x",)),
    "code": _acts("read*", "-n -r -w -g -d", "opens an editor", asks=("code .", "code --goto x")),
    "less": _acts("read*", "-N -S -R -F -X", "may run other programs", asks=("less README.md",)),
    "more": _acts("read*", "", "may run other programs", asks=("more README.md",)),
    "man": _acts("text*", "", "may run other programs", asks=("man ls", "man -P ./x ls")),
    "info": _acts("text*", "", "may run other programs", asks=("info ls",)),
    "kill": _acts("text*", "", "ends a process", asks=("kill 123", "kill -9 123")),
    "pkill": _acts("text*", "", "ends processes", asks=("pkill node",)),
    "killall": _acts("text*", "", "ends processes", asks=("killall node",)),
    "crontab": _acts("text*", "", "what runs at set times", asks=("crontab -l",)),
    "systemctl": _acts("text*", "", "services of the machine", asks=("systemctl status x",)),
    "sqlite3": _acts(
        "write text*", "-header -json -csv -readonly", "runs SQL", asks=("sqlite3 x.db .tables",)
    ),
    "psql": _acts("text*", "", "runs SQL", asks=("psql -c 'select 1'",)),
    "mysql": _acts("text*", "", "runs SQL", asks=("mysql -e 'select 1'",)),
    "xargs": _acts(
        "text*",
        "",
        "runs words that it reads",
        asks=("xargs rm", "ls | xargs rm -f", "ls | xargs cat", "xargs"),
    ),
    "su": _acts("text*", "", "runs as another user", asks=("su", "su -c ls", "su root")),
    "sudo": _acts("text*", "", "runs as another user", asks=("sudo -l", "sudo ls", "sudo -i")),
    "open": _acts("text*", "", "opens a program", asks=("open x",)),
    "xdg-open": _acts("text*", "", "opens a program", asks=("xdg-open x",)),
}
TABLE["unzip"] = replace(TABLE["unzip"], halts=True)  # later words are names in the archive
