# Completes bridle in fish. For ~/.config/fish/config.fish: bridle completion fish | source
function __bridle_complete
    set -l given (commandline -opc)
    set -l current (commandline -ct)
    # `command bridle`: the one on the PATH, also where a file of a folder was typed.
    for line in (command bridle completion fish --words -- $given[2..-1] $current </dev/null 2>/dev/null)
        switch $line
            case ':files*'
                __fish_complete_path $current
            case ':folders*'
                __fish_complete_directories $current ''
            case '*'
                printf '%s\n' $line
        end
    end
end
complete --command bridle --no-files --keep-order --arguments '(__bridle_complete)'
