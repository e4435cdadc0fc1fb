"""The names that take care, as data: patterns, what care they take, and why, for a person. No code.

A pattern is a path whose first name may stand in any folder (`INSIDE`), in a home folder (`HOME`)
or at the top of the system (`SYSTEM`). One `*` stands for anything within a name; `/**` at the end
for the folder itself and everything below it. All of it is written as `protected.fold` leaves it.
"""

from typing import NamedTuple

from bridle.protocols.ground import Care


class Group(NamedTuple):
    """Patterns that take the same care for the same reason; they stand apart by white space.

    A `+` in a pattern stands for a space in a name.
    """

    why: str
    reading: Care
    writing: Care
    patterns: str


# In the folder of a repository (`.git`, `name.git`), in any place below it: names, and pairs of
# them. What stands here makes git run programs, or takes it to another repository that does.
GIT_RUNS = (
    "config config.worktree config.lock hooks commondir gitdir worktrees "
    "rebase-merge rebase-apply sequencer"
)
GIT_RUNS_BELOW = frozenset(
    [("info", "attributes"), ("info", "alternates"), ("info", "http-alternates")]
)
GIT_WHY = "it makes git run programs, or leads it elsewhere"
GIT_FILES_WHY = "it is git's own file"

INSIDE = (
    Group("it is one of bridle's own files", "", "deny", ".bridle/**"),
    Group(
        "it makes version control run programs",
        "",
        "deny",
        ".hg/hgrc .jj/repo/config.toml .gitconfig",
    ),
    Group("it is version control's own file", "", "ask", ".hg/** .jj/** .svn/** .bzr/**"),
    Group(
        "it holds credentials",
        "ask",
        "ask",
        ".env .env.* *.env .env-* .env_* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.kdb "
        "*.ppk *.p8 *.ovpn id_rsa* id_dsa* id_ecdsa* id_ed25519* .netrc _netrc .pgpass "
        ".my.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .vault-pass* .dockercfg "
        ".docker/config.json .kube/** kubeconfig *.kubeconfig .ssh/** .aws/** .azure/** .gnupg/** "
        ".config/gcloud/** .s3cfg .boto credentials* .credentials* secrets.yml secrets.yaml "
        "secrets.json secrets.toml secrets.env .secrets .secrets.* *.tfvars terraform.tfstate "
        "terraform.tfstate.backup .terraformrc .authinfo .authinfo.gpg client_secret*.json "
        "service-account*.json service_account*.json gha-creds-*.json *.agekey age.key",
    ),
    Group(
        "it runs in continuous integration",
        "",
        "ask",
        ".github/workflows/** .github/actions/** .gitlab-ci.yml .gitlab-ci.yaml .gitlab/ci/** "
        ".circleci/** .travis.yml .drone.yml .drone.yaml .woodpecker/** .woodpecker.yml "
        ".woodpecker.yaml .buildkite/** .forgejo/workflows/** .gitea/workflows/** .teamcity/** "
        ".cirrus.yml appveyor.yml .appveyor.yml azure-pipelines.yml azure-pipelines.yaml "
        "bitbucket-pipelines.yml jenkinsfile cloudbuild.yaml buildspec.yml .semaphore/**",
    ),
    Group(
        "an editor or another agent runs what it says",
        "",
        "ask",
        ".vscode/** .vscode-insiders/** .idea/** .fleet/** .zed/** .vs/** *.code-workspace "
        ".devcontainer/** .devcontainer.json .nvim.lua .nvimrc .exrc .vimrc .lvimrc .dir-locals.el "
        ".mcp.json mcp.json .claude/** .claude.json .cursor/** .cursorrules .codex/** .gemini/** "
        ".windsurf/** .continue/** .aider.conf.yml .roo/** .clinerules/** .kiro/** .opencode/** "
        "opencode.json .amazonq/** .junie/**",
    ),
    Group(
        "it runs by itself when somebody works in the folder",
        "",
        "ask",
        ".envrc .direnv/** .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml "
        ".husky/** lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml .lefthook/** .mise.toml "
        ".mise/** .rtx.toml .gitattributes .gitmodules .yarnrc .yarnrc.yml .pnpmfile.cjs "
        ".cargo/config.toml .cargo/config .bazelrc .gdbinit .lldbinit sitecustomize.py "
        "usercustomize.py site-packages/*.pth .bashrc .bash_profile .bash_login "
        ".bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout "
        ".config/fish/** .config/git/** "
        ".config/autostart/** .config/systemd/** .ripgreprc .inputrc .screenrc .tmux.conf",
    ),
)

# What looks like credentials by its name and is none.
HARMLESS = (
    ".env*.example .env*-example .env*.sample .env*.template .env*.dist .env*.tpl .env*.schema "
    "example.env sample.env template.env id_*.pub *.tfvars.example"
)
# `credentials.py` is a program, not a credential.
SOURCE = (
    "c cc cpp cs css dart ex exs go h hpp html java js jsx kt md mjs mts php py pyi rb rs rst "
    "scala svelte swift ts tsx vue"
)

HOME = (
    Group(
        "it holds your credentials",
        "deny",
        "deny",
        ".ssh/** .aws/** .azure/** .config/gcloud/** .kube/** .docker/config.json .dockercfg "
        ".netrc _netrc .gnupg/** .password-store/** .pgpass .my.cnf .mylogin.cnf .git-credentials "
        ".config/git/credentials .npmrc .yarnrc.yml .pypirc .cargo/credentials "
        ".cargo/credentials.toml .gem/credentials .bundle/config .config/gh/** .config/hub "
        ".config/glab-cli/** .config/op/** .config/rclone/** .config/doctl/** .config/hcloud/** "
        ".config/helm/** .config/sops/** .config/containers/auth.json .terraform.d/** "
        ".terraformrc .vault-token .s3cfg .boto .databrickscfg .oci/** .snowflake/** "
        ".m2/settings.xml .gradle/gradle.properties .composer/auth.json .config/composer/auth.json "
        ".authinfo .authinfo.gpg .fly/** .config/heroku/** .config/netlify/** "
        ".local/share/com.vercel.cli/** .wrangler/** .config/.wrangler/** "
        ".claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json "
        ".config/github-copilot/** .local/share/opencode/auth.json "
        ".huggingface/** .cache/huggingface/token .kaggle/** .config/age/** .age/** .putty/**",
    ),
    Group(
        "it is where your passwords are kept",
        "deny",
        "deny",
        ".local/share/keyrings/** .local/share/kwalletd/** .kde/share/apps/kwallet/** "
        ".config/keepassxc/** .config/1password/** .config/bitwarden/** "
        ".config/bitwarden+cli/** library/keychains/** .bitcoin/** .ethereum/** .electrum/** "
        ".config/solana/** .config/signal/** .xauthority .iceauthority",
    ),
    Group(
        "it is a browser's or a mail program's own folder",
        "deny",
        "deny",
        ".mozilla/** .thunderbird/** .config/google-chrome/** .config/google-chrome-beta/** "
        ".config/chromium/** .config/bravesoftware/** .config/microsoft-edge/** .config/opera/** "
        ".config/vivaldi/** .librewolf/** .waterfox/** snap/firefox/** snap/chromium/** "
        ".var/app/org.mozilla.firefox/** .var/app/com.google.chrome/** library/cookies/** "
        "library/safari/** library/mail/** library/messages/** "
        "library/application+support/google/chrome/** library/application+support/firefox/** "
        "library/application+support/bravesoftware/** "
        "library/application+support/microsoft+edge/** library/application+support/1password/**",
    ),
    Group(
        "it is a history of what you typed",
        "deny",
        "deny",
        ".bash_history .zsh_history .histfile .sh_history .ash_history .python_history "
        ".psql_history .mysql_history .sqlite_history .node_repl_history .irb_history "
        ".rediscli_history .local/share/fish/fish_history .lesshst .viminfo "
        ".zsh_sessions/** .wget-hsts",
    ),
)

SYSTEM = (
    Group(
        "it holds the system's credentials",
        "deny",
        "deny",
        "etc/shadow etc/shadow- etc/gshadow etc/gshadow- etc/sudoers etc/sudoers.d/** "
        "etc/ssl/private/** etc/pki/tls/private/** etc/ssh/ssh_host_*_key etc/krb5.keytab "
        "etc/letsencrypt/** etc/wireguard/** etc/kubernetes/** etc/rancher/** etc/security/opasswd "
        "var/lib/sss/** var/run/secrets/** run/secrets/** run/credentials/** "
        "private/etc/master.passwd private/var/db/dslocal/** library/keychains/**",
    ),
    Group(
        "it is a way into a running process or the kernel",
        "deny",
        "deny",
        "proc/*/environ proc/*/mem proc/*/root/** proc/*/cwd/** proc/*/fd/** proc/*/fdinfo/** "
        "proc/*/exe proc/*/map_files/** proc/*/task/** proc/*/ns/** proc/*/auxv proc/*/maps "
        "proc/*/pagemap proc/*/cmdline proc/kcore proc/kmem proc/sysrq-trigger proc/kpagecount "
        "proc/sys/kernel/core_pattern sys/kernel/debug/** sys/fs/cgroup/*/release_agent",
    ),
    Group(
        "it is a raw device",
        "deny",
        "deny",
        "dev/mem dev/kmem dev/port dev/kmsg dev/sd* dev/hd* dev/vd* dev/xvd* dev/nvme* dev/mmcblk* "
        "dev/dm-* dev/mapper/** dev/disk/** dev/loop* dev/md* dev/sr* dev/fd0 dev/input/** "
        "dev/disk* dev/rdisk* dev/bpf* dev/kvm dev/fuse",
    ),
    Group(
        "it is a connection to somebody who acts for you",
        "deny",
        "deny",
        "run/docker.sock var/run/docker.sock run/containerd/** run/podman/** run/user/*/keyring/** "
        "run/user/*/gnupg/** run/user/*/bus run/dbus/** var/run/dbus/** run/systemd/private",
    ),
    Group("bash makes a network connection of it", "ask", "ask", "dev/tcp/** dev/udp/**"),
)
