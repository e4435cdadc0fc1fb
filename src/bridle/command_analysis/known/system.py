"""Programs that say something about the machine, the processes and the time."""

from bridle.command_analysis.argv import Known

_PS = (
    "-e -f -F -l -A -a -d -o= -p= -u= -U= -C= -g= -t= -x -H -w -N -L -T -j -y -M -q= --sort= "
    "--pid= --ppid= --user= --forest --no-headers --headers --format= --cols= --width= --version"
)

TABLE = {
    "pwd": Known("reads", "-P -L --logical --physical", runs=("pwd", "pwd -P"), asks=("pwd --x",)),
    "date": Known(
        "reads",
        "-u -d= -I? -R -r=read --date= --utc --universal --iso-8601? --rfc-3339= --rfc-email "
        "--reference=read --version",
        "text*",
        check="date",
        runs=("date", "date -u +%Y-%m-%dT%H:%M:%SZ", "date -d yesterday +%s", "date -Iseconds"),
        asks=("date -s 2020-01-01", "date 010100002020", "date --set=x", "date -f /etc/passwd"),
    ),
    "cal": Known("reads", "-3 -1 -m -y -j", "text*", runs=("cal",), asks=("cal --bogus",)),
    "whoami": Known("reads", runs=("whoami",), asks=("whoami --bogus",)),
    "id": Known(
        "reads",
        "-u -g -G -n -r -z -Z --user --group --groups --name --real --zero",
        "text*",
        runs=("id", "id -un"),
        asks=("id --bogus",),
    ),
    "groups": Known("reads", "", "text*", runs=("groups",), asks=("groups --bogus",)),
    "users": Known("reads", runs=("users",), asks=("users /etc/x",)),
    "who": Known("reads", "-a -b -H -q -u", runs=("who",), asks=("who /var/log/wtmp",)),
    "logname": Known("reads", runs=("logname",), asks=("logname x",)),
    "uname": Known(
        "reads",
        "-a -s -n -r -v -m -p -i -o --all --kernel-name --machine --kernel-release "
        "--operating-system --processor",
        runs=("uname -a", "uname -sm"),
        asks=("uname x",),
    ),
    "arch": Known("reads", runs=("arch",), asks=("arch -x86_64 sh",)),
    "nproc": Known("reads", "--all --ignore=", runs=("nproc", "nproc --all"), asks=("nproc x",)),
    "hostname": Known(
        "reads",
        "-s --short",
        runs=("hostname", "hostname -s"),
        asks=("hostname evil", "hostname -f", "hostname -F x"),
    ),
    "uptime": Known("reads", "-p -s --pretty --since", runs=("uptime",), asks=("uptime x",)),
    "free": Known(
        "reads",
        "-b -k -m -g -h -t -w -l -c= -s= --human --mega --giga --total --wide",
        runs=("free -h",),
        asks=("free x",),
    ),
    "lscpu": Known(
        "reads",
        "-e? -p? -J -a -b -c -x --json --extended? --parse?",
        runs=("lscpu",),
        asks=("lscpu -s /x",),
    ),
    "lsblk": Known(
        "reads",
        "-a -f -l -m -n -o= -p -t -J -d --json",
        runs=("lsblk -f",),
        asks=("lsblk --bogus",),
    ),
    "getconf": Known("reads", "-a", "text*", runs=("getconf PAGE_SIZE",), asks=("getconf -v x y",)),
    "locale": Known("reads", "-a -m -k -c", "text*", runs=("locale -a",), asks=("locale --x",)),
    "tty": Known("reads", "-s", runs=("tty",), asks=("tty x",)),
    "ps": Known(
        "reads",
        _PS,
        "text*",
        check="ps",
        runs=("ps aux", "ps -ef", "ps -o pid,cmd -p 1", "ps aux | grep python", "ps"),
        asks=("ps eww", "ps auxe", "ps --bogus", "ps e"),
    ),
    "pgrep": Known(
        "reads",
        "-f -l -a -x -c -n -o -i -v -d= -u= -U= -g= -P= -t= --full --list-name",
        "text*",
        runs=("pgrep -fl python",),
        asks=("pgrep -F /x",),
    ),
    "pidof": Known("reads", "-s -x", "text*", runs=("pidof python",), asks=("pidof --bogus x",)),
    "pstree": Known(
        "reads", "-a -p -u -n -h -l -c -A", "text*", runs=("pstree -p",), asks=("pstree --bogus",)
    ),
    "top": Known(
        reason="may make a folder for its settings in the home folder",
        asks=("top", "top -b -n 1 | head -20", "top --help", "top --version"),
    ),
    "ss": Known(
        "reads",
        "-t -u -l -n -p -a -s -4 -6 -x -e -o -m -i -H -w",
        runs=("ss -tlnp",),
        asks=("ss -K dst x", "ss -r", "ss -D out"),
    ),
    "which": Known(
        "reads", "-a -s --all", "text*", runs=("which python3 node",), asks=("which --bogus x",)
    ),
    "whereis": Known(
        "reads", "-b -m -s -u -l", "text*", runs=("whereis python3",), asks=("whereis -B /x -f y",)
    ),
    "env": Known(
        "reads",
        "-0 --null",
        runs=("env", "env | sort", "env | grep LANG"),
        asks=("env -S 'ls'", "env PATH=/x ls", "env --split-string='ls -l'"),
    ),
    "printenv": Known(
        "reads", "-0 --null", "text*", runs=("printenv LANG",), asks=("printenv --bogus",)
    ),
    "sleep": Known("reads", "", "text*", runs=("sleep 1",), asks=("sleep --bogus",)),
    "seq": Known(
        "reads",
        "-s= -f= -w -# --separator= --format= --equal-width",
        "text*",
        runs=("seq 1 10", "seq -w 5"),
        asks=("seq --bogus 1",),
    ),
    "expr": Known("reads", "*", "text*", runs=("expr 1 + 2",)),
    "factor": Known("reads", "", "text*", runs=("factor 12",), asks=("factor --bogus",)),
    "numfmt": Known(
        "reads",
        "--to= --from= --suffix= --field= -d= --padding= --format=",
        "text*",
        runs=("numfmt --to=iec 123456",),
        asks=("numfmt --bogus 1",),
    ),
    "sw_vers": Known("reads", runs=("sw_vers",), asks=("sw_vers x",)),
    "lsb_release": Known(
        "reads", "-a -s -d -r -c -i", runs=("lsb_release -a",), asks=("lsb_release x",)
    ),
}
