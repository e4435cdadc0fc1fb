"""Programs that take a small program of their own as a word: jq, sed, awk. Strictly read."""

from bridle.commands.program import Known

TABLE = {
    "jq": Known(
        "reads",
        "-r -c -S -s -n -e -M -C -a -j -R --raw-output --compact-output --sort-keys --slurp "
        "--null-input --exit-status --monochrome-output --color-output --ascii-output "
        "--join-output --raw-input --tab --indent= --arg== --argjson== --args --jsonargs --stream "
        "--seq --unbuffered --version --help",
        "text read*",
        check="jq",
        runs=(
            "jq . package.json",
            "jq -r '.scripts | keys[]' package.json",
            "cat package.json | jq .name",
            "jq --arg x y '.a == $x' package.json",
        ),
        asks=(
            "jq -f prog.jq x",
            "jq . /etc/x.json",
            "jq 'import \"a\" as a; .' x",
            "jq --rawfile a /etc/passwd . x",
            "jq -L lib . x",
        ),
    ),
    "yq": Known(
        "reads",
        "-r -P -e -c -C -M -o= -p= -y --output-format= --input-format= --prettyPrint "
        "--unwrapScalar --no-colors --colors",
        "text read*",
        check="jq",
        runs=("yq '.jobs' conf.yaml", "yq -r .name conf.yaml"),
        asks=("yq -i '.a=1' conf.yaml", "yq 'load(\"/etc/x\")' x", "yq -s .a x"),
    ),
    "sed": Known(
        "reads",
        "-n -E -r -s -u -z -e= -i? --quiet --silent --expression= --regexp-extended --separate "
        "--unbuffered --null-data --in-place? --posix --debug --version --help",
        "text read*",
        instead="-e --expression",
        check="sed",
        runs=(
            "sed -n '1,20p' README.md",
            "sed -n 5p src/app.py",
            "sed 's/a/b/g' README.md",
            "sed -n '/foo/,/bar/p' README.md",
            "sed -e 1d -e '$d' README.md",
            "sed -nE 's/^name = \"(.*)\"/\\1/p' conf.yaml",
            "sed '/^#/d;s/x/y/' README.md",
            "sed -n '10,$p' README.md",
            "sed 's|/a|/b|' README.md",
            "sed 5q README.md",
            "sed -n '$=' README.md",
        ),
        asks=(
            "sed -i s/a/b/ README.md",
            "sed '1e id' x",
            "sed 's/a/id/e' x",
            "sed 'w out' x",
            "sed 's/a/b/w out' x",
            "sed -n '1r /etc/passwd' x",
            "sed -f script x",
            "sed R/etc/x y",
            "sed '1!e' x",
            "sed -n -- '1W out' x",
            "sed --expr=p x",
            "sed 's/a/b/;e' x",
            "sed -n '/a/w out' x",
            "sed 5p /etc/passwd",
            "sed -s -i.bak s/a/b/ x",
            "sed -l 'w out' x",
        ),
    ),
    "awk": Known(
        "reads",
        "-F= -v= --field-separator= --assign= --version",
        "text read*",
        check="awk",
        runs=(
            "awk '{print $1}' README.md",
            "awk -F, '{print $2, $3}' data.csv",
            "awk 'NR>=10 && NR<=20' README.md",
            "awk '/foo/{print NR\": \"$0}' README.md",
            "awk '{s+=$1} END {print s}' data.csv",
            "awk 'length($0) > 100' README.md",
            "ps aux | awk '{print $2}'",
            "awk '{if ($3 > 5) print $1/2}' data.csv",
        ),
        asks=(
            "awk 'BEGIN{system(\"id\")}'",
            "awk '{print > \"out\"}' x",
            "awk '{print | \"sh\"}' x",
            "awk -f prog x",
            "awk '{\"id\" | getline x; print x}' y",
            "awk 1 /etc/passwd",
            "awk 'BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}1' x",
            "awk '{print >> \"o\"}' x",
            "awk -i inplace 1 x",
            "awk '@load \"x\"' y",
            'awk \'/"/{print > "o"} /"/\' x',
            "awk -e 'BEGIN{}' x",
            "awk 'BEGIN{while((\"id\"|getline l)>0) print l}'",
        ),
    ),
}
for _name in ("gawk", "mawk", "nawk"):
    TABLE[_name] = TABLE["awk"]
TABLE["gsed"] = TABLE["sed"]
