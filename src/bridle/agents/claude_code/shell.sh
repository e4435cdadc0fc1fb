#!/bin/sh
# Runs one command of Claude Code's own shell. The program has keys, tokens and proxies in its
# environment; a command gets the variables that any command of ours gets, and nothing else. The
# last name is the one that the program looks for before a command that may not install packages.
command=$1
set -- CLAUDECODE=1 GIT_EDITOR=true
for name in \
  PATH HOME USER LOGNAME SHELL TMPDIR TZ LANG LANGUAGE PWD \
  LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES \
  LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME \
  VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT NVM_DIR JAVA_HOME GOPATH GOROOT \
  CARGO_HOME RUSTUP_HOME XDG_CACHE_HOME SSL_CERT_FILE SSL_CERT_DIR \
  TERM PAGER GIT_PAGER GIT_TERMINAL_PROMPT __CLAUDE_CC_BUN_OPTIONS
do
  eval "value=\${$name-} is_set=\${$name+yes}"
  if [ "$is_set" ]; then set -- "$@" "$name=$value"; fi
done
case $command in
  *"/snapshot-zsh-"*) exec env -i "$@" zsh -c "$command" ;;
  *) exec env -i "$@" bash -c "$command" ;;
esac
