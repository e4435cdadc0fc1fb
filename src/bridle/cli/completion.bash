# Completes bridle in bash (3.2 or newer). For ~/.bashrc: eval "$(bridle completion bash)"
_bridle_complete() {
    local line value about width=0 tab=$'\t'
    local -a values=() abouts=()
    COMPREPLY=()
    # `command bridle`: the one on the PATH, also where a file of a folder was typed.
    while IFS= read -r line; do
        value=${line%%"$tab"*}
        about=${line#*"$tab"}
        case $value in
            :files | :folders)
                local kind=-f
                [[ $value == :folders ]] && kind=-d
                while IFS= read -r line; do COMPREPLY+=("$line"); done \
                    < <(compgen "$kind" -- "${COMP_WORDS[COMP_CWORD]}")
                compopt -o filenames 2>/dev/null
                return
                ;;
        esac
        # Bash replaces what follows the last `=`, and no more.
        [[ ${COMP_WORDS[COMP_CWORD]} != *=* && $value == --*=* ]] && value=${value#*=}
        values+=("$value")
        abouts+=("$about")
        ((${#value} > width)) && width=${#value}
    done < <(command bridle completion bash --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" </dev/null 2>/dev/null)
    local at
    for at in "${!values[@]}"; do
        # A description is shown beside several, and never inserted: not where there is one
        # candidate, nor where candidates are put in one after the other (menu-complete).
        if ((${#values[@]} == 1)) || [[ ${COMP_TYPE:-9} == 37 || ${COMP_TYPE:-9} == 42 || -z ${abouts[at]} ]]; then
            COMPREPLY+=("${values[at]}")
        else
            COMPREPLY+=("$(printf '%-*s  (%s)' "$width" "${values[at]}" "${abouts[at]}")")
        fi
    done
    if ((${#values[@]} == 1)) && [[ ${values[0]} == *[/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _bridle_complete bridle 2>/dev/null || complete -F _bridle_complete bridle
