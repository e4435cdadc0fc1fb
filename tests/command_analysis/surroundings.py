"""What a command is put behind, beside or into, and lines whose very letters are a trick."""

SPELLED = [
    "ls\u200b -la",
    "ls\u2028rm x",
    "cat README.md\u00a0x",
    "ls\nrm x",
    "ls\rrm x",
    "ls \\\n-la; rm x",
    "ls\x00; rm x",
    "cat <<EOF | sh\nls\nEOF",
    "bash <<EOF\nls\nEOF",
    "\u202els",
]
"""The same, where the letters themselves are the trick."""

WRAPPERS = [
    "sudo {}", "sudo -u root -n {}", "doas {}", "env {}", "env -i {}", "env LANG=C {}",
    "nice -n 5 {}", "ionice -c 3 {}", "timeout 5 {}", "timeout -k 1 -s KILL 5 {}", "nohup {}",
    "setsid {}", "stdbuf -oL {}", "time {}", "command {}", "exec {}", "chroot / {}", "busybox {}",
    "xargs {}", "watch {}", "strace -f {}", "unshare -r {}", "uv run {}", "npx {}",
    "timeout 5 nice env sudo {}",
]  # fmt: skip
"""A command put behind another one."""

SEPARATORS = [
    "ls; {}", "ls && {}", "ls || {}", "ls | {}", "ls & {}", "ls\n{}", "({})", "{{ {}; }}",
    "{} &", "! {}", "ls $({})", "ls `{}`", "if true; then {}; fi", "for i in 1; do {}; done",
    "while true; do {}; done", "f() {{ {}; }}; f", "case x in x) {};; esac", "{} # ls", "ls |& {}",
    "cat <({})", 'echo "$({})"', "cd src && {}",
]  # fmt: skip
"""A command put beside or into another one."""
