_teratron_value() {  # what completes it, and its beginning
  local words=${1%\*}
  case $words in
    words:*) words=${words#words:}; mapfile -t COMPREPLY < <(compgen -W "${words//,/ }" -- "$2") ;;
    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    prefixes)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$2"; compgen -f -X '!*.idx' -- "$2" | sed 's/\.idx$//') ;;
  esac
}

_teratron() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i=2
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    mapfile -t COMPREPLY < <(compgen -W "$_teratron_first --help --version" -- "$word")
    return
  fi
  if [[ -n ${_teratron_second[$command]-} ]]; then
    if (( COMP_CWORD == 2 )); then
      mapfile -t COMPREPLY < <(compgen -W "${_teratron_second[$command]}" -- "$word")
      return
    fi
    command+=" ${COMP_WORDS[2]}" i=3
  fi
  [[ -n ${_teratron_flags[$command]-} ]] || return
  local arguments value= next=0 flags_ended=
  read -ra arguments <<<"${_teratron_arguments[$command]}"
  for (( ; i < COMP_CWORD; ++i )); do
    case $flags_ended${COMP_WORDS[i]} in
      =) ;;
      --) flags_ended=yes: value= ;;
      --*) value=${_teratron_values[$command ${COMP_WORDS[i]}]-} ;;
      *)
        if [[ -n $value ]]; then
          [[ $value == *\* ]] || value=
        elif [[ ${arguments[next]-} != *\* ]]; then
          (( ++next ))
        fi ;;
    esac
  done
  [[ $word != = ]] || word=
  if [[ -n $value && $word != --* ]]; then
    _teratron_value "$value" "$word"
  elif [[ -z $flags_ended && ( $word == -* || -z ${arguments[next]-} ) ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_teratron_flags[$command]}" -- "$word")
  else
    _teratron_value "${arguments[next]-}" "$word"
  fi
}
complete -F _teratron teratron
