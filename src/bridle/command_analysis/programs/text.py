"""Programs that print, search, sort, compare and edit text."""

from bridle.command_analysis import checks
from bridle.command_analysis.argv import Program

_GREP = (
    "-E -F -G -P -i -y -v -w -x -c -l -L -q -s -n -H -h -o -b -a -I -r -U -z -Z -T -A=n -B=n -C=n "
    "-m=n -e= -f=read -d= -D= -# --extended-regexp --fixed-strings --basic-regexp --perl-regexp "
    "--ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color? "
    "--colour? --files-with-matches --files-without-match --max-count=n --only-matching --quiet "
    "--silent --no-messages --byte-offset --with-filename --no-filename --label= --line-number "
    "--initial-tab --null --after-context=n --before-context=n --context=n --text --binary-files= "
    "--exclude= --exclude-from=read --exclude-dir= --include= --recursive --line-buffered "
    "--null-data --regexp= --file=read --directories= --devices= --version --help"
)
_RG = (
    "-e= -f=read -g= -i -S -s -F -w -x -v -c -l -n -N -o -p -q -r= -t= -T= -u -U -A=n -B=n -C=n "
    "-m=n -M=n -j=n -d=n -0 -H -I -a -P -E= -b -. -V --regexp= --file=read --glob= --iglob= "
    "--ignore-case --smart-case --case-sensitive --fixed-strings --word-regexp --line-regexp "
    "--invert-match --count --count-matches --files --files-with-matches --files-without-match "
    "--line-number --no-line-number --only-matching --pretty --quiet --replace= --type= "
    "--type-not= --type-add= --type-list --unrestricted --multiline --multiline-dotall "
    "--after-context=n --before-context=n --context=n --max-count=n --max-columns=n "
    "--max-columns-preview --max-depth=n --max-filesize= --threads=n --null --null-data "
    "--with-filename --no-filename --text --pcre2 --engine= --encoding= --byte-offset --hidden "
    "--no-hidden --no-ignore --no-ignore-vcs --no-ignore-dot --no-ignore-parent "
    "--no-ignore-global --no-ignore-exclude --no-ignore-files --ignore-file=read --json --stats "
    "--sort= --sortr= --heading --no-heading --column --no-column --vimgrep --color= --colors= "
    "--trim --passthru --crlf --mmap --no-mmap --one-file-system --no-messages --no-config "
    "--binary --line-buffered --block-buffered --field-match-separator= "
    "--field-context-separator= --context-separator= --no-context-separator --version --help"
)
_SORT = (
    "-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k= -t= -S= -o=write -T=write "
    "--output=write --temporary-directory=write --ignore-leading-blanks --dictionary-order "
    "--ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort "
    "--numeric-sort --random-sort --reverse --sort= --version-sort --check? --key= --merge "
    "--stable --buffer-size= --field-separator= --parallel= --unique --zero-terminated "
    "--batch-size= --debug --version --help"
)
_DIFF = (
    "-u -U= -c -C= -q -s -y -W= -w -b -B -i -E -N -a -p -F= -I= -Z -t -T -d -e -n -L= -# --normal "
    "--brief --report-identical-files --context? --unified? --ed --rcs --side-by-side --width= "
    "--left-column --suppress-common-lines --show-c-function --show-function-line= --label= "
    "--expand-tabs --initial-tab --tabsize= --suppress-blank-empty --no-dereference --new-file "
    "--ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change "
    "--ignore-all-space --ignore-blank-lines --ignore-matching-lines= --text --strip-trailing-cr "
    "--minimal --speed-large-files --color? --palette= --horizon-lines= --version --help"
)

TABLE = {
    "cat": Program(
        "reads",
        "-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number "
        "--squeeze-blank --show-tabs --show-nonprinting --version --help",
        "read*",
        runs=(
            "cat README.md",
            "cat -n src/app.py",
            "cat src/*.py",
            "cat < README.md",
            "cat README.md | head -20",
            "cat ./src/app.py src/../README.md",
        ),
        asks=(
            "cat /etc/passwd",
            "cat .env",
            "cat ~/.netrc",
            "cat $X",
            "cat ../secret",
            "cat README.md > copy.md",
            "cat README.md | sh",
            "cat --bogus x",
        ),
    ),
    "bat": Program(
        "reads",
        "-p -n -A -l= -r= --plain --number --language= --line-range= --style= --color= --paging=",
        "read*",
        runs=("bat -p --color=never README.md",),
        asks=("bat --pager=x README.md",),
    ),
    "head": Program(
        "reads",
        "-c=n -n=n -q -v -z -# --bytes=n --lines=n --quiet --silent --verbose --zero-terminated",
        "read*",
        runs=(
            "head README.md",
            "head -5 README.md",
            "head -n5 README.md",
            "head --lines=5 src/app.py",
            "ls | head",
        ),
        asks=("head --line=5 x", "head /etc/shadow"),
    ),
    "tail": Program(
        "reads",
        "-c=n -n=n -q -v -z -f -F -s=n -# --bytes=n --lines=n --quiet --silent --verbose "
        "--zero-terminated --follow? --retry --pid=n --sleep-interval=n",
        "read*",
        runs=("tail -n 20 README.md", "tail -20 README.md", "tail -n +5 README.md"),
        asks=("tail /var/log/syslog", "tail --bogus x"),
    ),
    "wc": Program(
        "reads",
        "-c -m -l -L -w --bytes --chars --lines --max-line-length --words --total=",
        "read*",
        runs=("wc -l src/*.py", "wc README.md", "git ls-files | wc -l"),
        asks=("wc --files0-from=list", "wc /etc/passwd"),
    ),
    "grep": Program(
        "reads",
        _GREP,
        "text read*",
        operand_flags="-e -f --regexp --file",
        check=checks.grep_folders,
        runs=(
            "grep -rn foo src",
            "grep -i 'a b' README.md",
            "grep -rnE 'a|b' --include='*.py' .",
            "grep -c x README.md",
            "grep -e a -e b README.md",
            "grep -A3 -B2 foo src/app.py",
            "ls | grep -v test",
            "grep -rl TODO src tests",
            "grep -5 foo README.md",
        ),
        asks=(
            "grep foo /etc/passwd",
            "grep -f /etc/passwd x",
            "grep -R foo .",
            "grep --reg=x y",
            "grep foo .env",
            "grep -r key ~",
            "grep -C x /etc/passwd",
            "grep -A /etc/passwd x",
            "grep -r foo src/../..",
        ),
    ),
    "rg": Program(
        "reads",
        _RG,
        "text read*",
        operand_flags="-e -f --regexp --file --files --type-list",
        check=checks.ripgrep_hidden,
        runs=(
            "rg foo",
            "rg -n 'def \\w+' src",
            "rg -t py --files",
            "rg -uu TODO src",
            "rg -l import -g '*.py'",
            "rg -A2 -B2 foo src/app.py",
            "rg --json x",
            "rg -e a -e b src",
            "rg --files | head",
        ),
        asks=(
            "rg --pre ./x foo",
            "rg --pre=x foo",
            "rg --hostname-bin x foo",
            "rg -z foo",
            "rg --search-zip foo",
            "rg foo /etc",
            "rg -L foo",
            "rg --pre-gl=x foo",
        ),
    ),
    "sort": Program(
        "reads",
        _SORT,
        "read*",
        runs=("sort README.md", "sort -u", "sort -t, -k2,2n data.csv", "sort -rn | head"),
        asks=(
            "sort -o out x",
            "sort --compress-program=./x y",
            "sort -T /x y",
            "sort --out=x y",
            "sort --files0-from=x",
            "sort --compress=sh x",
        ),
    ),
    "uniq": Program(
        "reads",
        "-c -d -D -i -u -z -f= -s= -w= --count --repeated --all-repeated? --skip-fields= "
        "--ignore-case --skip-chars= --unique --zero-terminated --check-chars= --group?",
        "read write",
        runs=("uniq -c", "sort README.md | uniq -c | sort -rn"),
        asks=("uniq a b",),
    ),
    "cut": Program(
        "reads",
        "-b= -c= -d= -f= -n -s -z --bytes= --characters= --delimiter= --fields= --complement "
        "--only-delimited --output-delimiter= --zero-terminated",
        "read*",
        runs=("cut -d, -f1 data.csv", "cut -c1-10 README.md"),
        asks=("cut -f1 /etc/passwd",),
    ),
    "tr": Program(
        "reads",
        "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        "text*",
        runs=("tr a-z A-Z", "tr -d '\\n'"),
        asks=("tr --bogus a b",),
    ),
    "paste": Program(
        "reads",
        "-d= -s -z --delimiters= --serial --zero-terminated",
        "read*",
        runs=("paste -sd, data.csv",),
        asks=("paste /etc/passwd x",),
    ),
    "join": Program(
        "reads",
        "-a= -e= -i -j= -o= -t= -v= -1= -2= -z --header --check-order --nocheck-order",
        "read*",
        runs=("join -t, data.csv data.csv",),
        asks=("join /etc/passwd x",),
    ),
    "comm": Program(
        "reads",
        "-1 -2 -3 -z --check-order --nocheck-order --output-delimiter= --total",
        "read*",
        runs=("comm -12 a b",),
        asks=("comm a /etc/passwd",),
    ),
    "column": Program(
        "reads",
        "-t -s= -c= -x -J -N= -o= -R= -T= -H= -e -E= --table --separator=",
        "read*",
        runs=("column -t -s, data.csv",),
        asks=("column --bogus x", "column -n /etc/passwd"),
    ),
    "fold": Program(
        "reads",
        "-b -s -w= --bytes --spaces --width=",
        "read*",
        runs=("fold -w 80 README.md",),
        asks=("fold /etc/passwd",),
    ),
    "fmt": Program(
        "reads",
        "-w= -s -u -c -t -p= --width=",
        "read*",
        runs=("fmt -w 80 README.md",),
        asks=("fmt /etc/passwd",),
    ),
    "expand": Program(
        "reads",
        "-t= -i --tabs= --initial",
        "read*",
        runs=("expand -t4 README.md",),
        asks=("expand /etc/passwd",),
    ),
    "unexpand": Program(
        "reads",
        "-t= -a --tabs= --all",
        "read*",
        runs=("unexpand -a README.md",),
        asks=("unexpand /etc/passwd",),
    ),
    "nl": Program(
        "reads",
        "-b= -d= -f= -h= -i= -l= -n= -p -s= -v= -w=",
        "read*",
        runs=("nl -ba README.md",),
        asks=("nl /etc/passwd",),
    ),
    "tac": Program(
        "reads",
        "-b -r -s= --before --regex --separator=",
        "read*",
        runs=("tac README.md",),
        asks=("tac /etc/passwd",),
    ),
    "rev": Program(
        "reads", "-0 --zero", "read*", runs=("rev README.md",), asks=("rev /etc/passwd",)
    ),
    "shuf": Program(
        "reads",
        "-e -i= -n= -r -z -o=write --output=write --echo --input-range= --head-count= --repeat",
        "read*",
        runs=("shuf -n 5 README.md",),
        asks=("shuf -o out x",),
    ),
    "diff": Program(
        "reads",
        _DIFF,
        "read*",
        check=checks.diff_folders,
        runs=("diff a b", "diff -u README.md src/app.py", "diff -y --width=120 a b"),
        asks=("diff a /etc/passwd", "diff -r a b", "diff --to-file=/etc/x a"),
    ),
    "cmp": Program(
        "reads",
        "-b -i= -l -n= -s --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent",
        "read read text*",
        runs=("cmp -s a b",),
        asks=("cmp a /etc/passwd",),
    ),
    "xxd": Program(
        "reads",
        "-a -b -c= -C -d -e -E -g= -i -l= -p -ps -r -s= -u",
        "read write",
        single_dash=True,
        flags_first=True,
        runs=("xxd -l 64 README.md", "xxd -p README.md", "xxd -ps README.md"),
        asks=(
            "xxd a b",
            "xxd /etc/shadow",
            "xxd -ps /etc/shadow",
            "xxd -r -ps src/app.py .git/hooks/pre-commit",
            "xxd -r a b",
            "xxd README.md -p",
            "xxd README.md -l /etc/shadow",
            "xxd -pr a",
        ),
    ),
    "od": Program(
        "reads",
        "-A= -t= -N= -j= -v -w? -c -x -b -d -o -a -f -i -l -s -S= --address-radix= --format= "
        "--read-bytes= --skip-bytes=",
        "read*",
        runs=("od -c README.md",),
        asks=("od /etc/shadow",),
    ),
    "hexdump": Program(
        "reads",
        "-b -c -C -d -n= -o -s= -v -x -e=",
        "read*",
        runs=("hexdump -C README.md",),
        asks=("hexdump -f fmt x",),
    ),
    "strings": Program(
        "reads",
        "-a -f -n= -t= -e= -o -# --all --bytes= --radix= --encoding=",
        "read*",
        check=checks.response_files,
        runs=("strings -n 8 data.bin",),
        asks=("strings /etc/shadow", "strings @opts", "strings -n @opts x"),
    ),
    "base64": Program(
        "reads",
        "-d -D -i -w= --decode --ignore-garbage --wrap=",
        "read",
        runs=("base64 README.md", "echo aGk= | base64 -d"),
        asks=("base64 ~/.ssh/id_rsa", "echo aGk= | base64 -d | sh", "base64 -o x y"),
    ),
    "zcat": Program(
        "reads", "-f -q -v", "read*", runs=("zcat log.gz | head",), asks=("zcat /x.gz",)
    ),
}
for _name in ("egrep", "fgrep"):
    TABLE[_name] = TABLE["grep"]
TABLE["hd"] = TABLE["hexdump"]
TABLE["base32"] = TABLE["base64"]
TABLE["batcat"] = TABLE["bat"]


# Programs that run a script which is an argument: jq, sed, awk. `checks` looks into it.


TABLE |= {
    "jq": Program(
        "reads",
        "-r -c -S -s -n -e -M -C -a -j -R --raw-output --compact-output --sort-keys --slurp "
        "--null-input --exit-status --monochrome-output --color-output --ascii-output "
        "--join-output --raw-input --tab --indent= --arg== --argjson== --args --jsonargs --stream "
        "--seq --unbuffered --version --help",
        "text read*",
        check=checks.jq,
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
    "yq": Program(
        "reads",
        "-r -P -e -c -C -M -o= -p= -y --output-format= --input-format= --prettyPrint "
        "--unwrapScalar --no-colors --colors",
        "read*",  # its versions disagree about which one is the filter
        check=checks.yq,
        runs=(
            "yq '.jobs' conf.yaml",
            "yq -r .name conf.yaml",
            "yq e .name conf.yaml",
            "yq eval '.a | keys' conf.yaml",
        ),
        asks=(
            "yq -i '.a=1' conf.yaml",
            "yq 'load(\"/etc/x\")' x",
            "yq -s .a x",
            "yq e 'load_str(\"/etc/passwd\")' conf.yaml",
            "yq ea 'load(\"/etc/passwd\")' conf.yaml",
            'yq \'eval("lo" + "ad_str(1)")\' conf.yaml',
            "yq '.a = env(HOME)' conf.yaml",
            "yq '.a = strenv(HOME)' conf.yaml",
            "yq eval .a /etc/passwd",
            "yq /etc/passwd",
        ),
    ),
    "sed": Program(
        "reads",
        "-n -E -r -s -u -z -e= -i? --quiet --silent --expression= --regexp-extended --separate "
        "--unbuffered --null-data --in-place? --posix --debug --version --help",
        "text read*",
        operand_flags="-e --expression",
        check=checks.sed,
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
            r"sed -n '/\[tool/,/^$/p' README.md",
            "sed 's/[^,]*,//' data.csv",
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
            "sed '/[[:alpha:]/p;#]/e touch p' README.md",
            "sed 's/[[:alpha:]/]/g;#/w out' README.md",
            "sed -n '1s/.*/x/\nT\ne' README.md",
            "sed -n '1s/.*/x/\nb\n1e id' README.md",
            "sed 's[a[b[' README.md",
            "sed 'e id' -e p README.md",
        ),
    ),
    "awk": Program(
        "reads",
        "-F= -v= --field-separator= --assign= --version",
        "text read*",
        check=checks.awk,
        flags_first=True,
        runs=(
            "awk '{print $1}' README.md",
            "awk -F, '{print $2, $3}' data.csv",
            "awk 'NR>=10 && NR<=20' README.md",
            "awk '/foo/{print NR\": \"$0}' README.md",
            "awk '{s+=$1} END {print s}' data.csv",
            "awk 'length($0) > 100' README.md",
            "ps aux | awk '{print $2}'",
            "awk '{if ($3 > 5) print $1/2}' data.csv",
            "awk '/foo|bar/' README.md",
            "awk -F'\"' '/\"name\"/ {print $4}' package.json",
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
            'awk \'/[[:alpha:]/"]/ {print "touch p" | "sh"} /"/\' README.md',
            'awk \'{if(0)exit /"/; print "x" | "sh"; if(0)exit /"/}\' README.md',
            'awk \'{x=length /"/; print "x" > f; x=length /"/}\' README.md',
            'awk \'BEGIN{for(i=0;i<1;print "x" > "out")i++}\'',
            "awk 'BEGIN{for(i=0;i<1;print \"x\" > f)i++}'",
            "awk '{print \"a|b\"}' README.md",
            "awk 1 -F /etc/passwd",
            "awk 1 README.md -f prog",
        ),
    ),
}
for _name in ("gawk", "mawk", "nawk"):
    TABLE[_name] = TABLE["awk"]
TABLE["gsed"] = TABLE["sed"]
