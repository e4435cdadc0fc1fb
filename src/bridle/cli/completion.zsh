#compdef bridle
# Completes bridle in zsh. For ~/.zshrc, after compinit: eval "$(bridle completion zsh)"
_bridle_complete() {
    local line value about tab=$'\t'
    local -a described open lines given
    given=("${(@Q)words[2,CURRENT]}")
    # `command bridle`: the one on the PATH, also where a file of a folder was typed.
    lines=("${(@f)$(command bridle completion zsh --words -- "${given[@]}" </dev/null 2>/dev/null)}")
    for line in "${lines[@]}"; do
        value=${line%%$tab*}
        about=${line#*$tab}
        case $value in
            '') ;;
            :files) _files; return ;;
            :folders) _files -/; return ;;
            *[/:]) open+=("${value//:/\\:}:$about") ;;
            *) described+=("${value//:/\\:}${about:+:$about}") ;;
        esac
    done
    local ret=1
    (( $#described )) && _describe -V bridle described && ret=0
    (( $#open )) && _describe -V 'bridle (to be continued)' open -S '' && ret=0
    return ret
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _bridle_complete "$@"
elif (( $+functions[compdef] )); then
    compdef _bridle_complete bridle
else
    print -u2 'bridle: completion needs compinit: run `autoload -Uz compinit && compinit` before'
fi
