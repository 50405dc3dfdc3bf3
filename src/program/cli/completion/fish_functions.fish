function _teratron_value  # what completes it, and the word's beginning
    set -l completion (string replace --regex '\*$' '' -- $argv[1])
    switch $completion
        case 'words:*'
            string split , -- (string replace words: '' -- $completion)
        case folders
            complete -C "'' $argv[2]" | string match --regex '^[^\t]*/(?:\t.*)?$'
        case files
            complete -C "'' $argv[2]"
        case prefixes
            complete -C "'' $argv[2]" | string replace --filter --regex '^([^\t]*)(?:(/)|\.idx)(?:\t.*)?$' '$1$2'
    end
end

function _teratron_complete
    set -l words (commandline -opc)[2..-1]
    set -l word (commandline -ct)
    if not set -q words[1]
        _teratron_first
        return
    end
    set -l name $words[1]
    set -l rest $words[2..-1]
    set -l second (_teratron_second $name)
    if set -q second[1]
        if not set -q rest[1]
            printf '%s\n' $second
            return
        end
        set name "$name $rest[1]"
        set rest $rest[2..-1]
    end
    set -l flags
    set -l values
    set -l helps
    set -l arguments
    _teratron_fields $name
    set -q flags[1]; or return
    set -l value ''
    set -l next 1
    set -l flags_ended ''
    for given in $rest
        if test -z "$flags_ended"; and string match --quiet -- '--*' $given
            set value ''
            if test "$given" = --
                set flags_ended yes
            else if set -l at (contains --index -- $given $flags)
                set value $values[$at]
            end
        else if test -n "$value"
            string match --quiet -- '*\*' $value; or set value ''
        else if not string match --quiet -- '*\*' $arguments[$next]
            set next (math $next + 1)
        end
    end
    set -l parts (string split --max 1 = -- $word)
    if test -z "$flags_ended"; and string match --quiet -- '--*' $word; and set -q parts[2]
        if set -l at (contains --index -- $parts[1] $flags)
            _teratron_value "$values[$at]" $parts[2] | string replace --regex -- '^' $parts[1]=
        end
    else if test -n "$value"; and not string match --quiet -- '--*' $word
        _teratron_value $value $word
    else if test -z "$flags_ended"; and begin
            string match --quiet -- '-*' $word; or not set -q arguments[$next]
        end
        for at in (seq (count $flags))
            printf '%s\t%s\n' $flags[$at] $helps[$at]
        end
    else
        _teratron_value "$arguments[$next]" $word
    end
end

complete --command teratron --erase
complete --command teratron --no-files --keep-order --arguments '(_teratron_complete)'
