// teratron completion: completion scripts for shells.
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "options/output.h"

namespace teratron {
namespace {

enum class Shell { kBash, kFish, kZsh };

struct CompletionOptions {
  Shell shell = Shell::kBash;
};

FieldList fields_of(CompletionOptions& o) {
  FieldList list;
  list.add_choice("shell", o.shell, {{"bash", Shell::kBash}, {"fish", Shell::kFish}, {"zsh", Shell::kZsh}},
                  "shell that reads the script")
      .role = FieldRole::kPositional;
  return list;
}

// Functions of the bash script. They walk command lines from the left, as options/command_line.cc. bash cuts words at
// "=", so --flag=value is three words.
constexpr std::string_view kBashFunctions = R"bash(
_teratron_value() {  # what completes it, and its beginning
  local words=${1%\*} found
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
)bash";

constexpr std::string_view kZshPrefixes = R"zsh(
_teratron_prefixes() {  # of the .idx files
  local -a found=($PREFIX*.idx(N:r) $PREFIX*(N-/))
  compadd -f -- $found
}
)zsh";

// Functions of the fish script, which walk command lines as those of bash. Here --flag=value is one word.
constexpr std::string_view kFishFunctions = R"fish(
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
)fish";

struct FirstWord {
  std::string word, summary;           // of a family: the second words
  std::vector<const Command*> family;  // empty: the word is a command
};

std::vector<FirstWord> first_words(const std::vector<Command>& commands) {
  std::vector<FirstWord> words;
  for (const Command& command : commands) {
    const std::size_t space = command.name.find(' ');
    const std::string first = command.name.substr(0, space);
    auto word = std::ranges::find(words, first, &FirstWord::word);
    if (word == words.end()) word = words.insert(word, {.word = first, .summary = command.summary});
    if (space == std::string::npos) continue;
    word->summary = (word->family.empty() ? "" : word->summary + ", ") + command.name.substr(space + 1);
    word->family.push_back(&command);
  }
  return words;
}

std::string second_word(const Command& command) { return command.name.substr(command.name.find(' ') + 1); }

std::string bash_script(const std::vector<Command>& commands) {
  std::vector<std::string> first;
  std::string tables;
  for (const FirstWord& word : first_words(commands)) {
    first.push_back(word.word);
    if (word.family.empty()) continue;
    std::vector<std::string> second;
    for (const Command* command : word.family) second.push_back(second_word(*command));
    tables += fmt::format("_teratron_second['{}']='{}'\n", word.word, fmt::join(second, " "));
  }
  for (const Command& command : commands) {
    tables += command.text([&](const FieldList& fields) { return bash_completion(command.name, fields); });
  }
  // Tables are global even where the script is read by a function, as bash-completion does it.
  return fmt::format(
      "# Completion of teratron {} in bash, made by `teratron completion bash`.\n"
      "declare -gA _teratron_second=() _teratron_flags=() _teratron_values=() _teratron_arguments=()\n"
      "_teratron_first='{}'\n{}{}",
      kVersion, fmt::join(first, " "), tables, kBashFunctions);
}

std::string zsh_described(const std::string& word, const std::string& summary) {
  return " " + shell_quoted(word + ":" + summary);
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string first, second, cases;
  for (const FirstWord& word : first_words(commands)) {
    first += zsh_described(word.word, word.summary);
    if (word.family.empty()) continue;
    std::string described;
    for (const Command* command : word.family) described += zsh_described(second_word(*command), command->summary);
    second += fmt::format("    {}) second=({}) ;;\n", word.word, described);
  }
  for (const Command& command : commands) {
    cases += command.text([&](const FieldList& fields) { return zsh_completion(command.name, fields); });
  }
  return fmt::format(
      "#compdef teratron\n# Completion of teratron {} in zsh, made by `teratron completion zsh`.\n{}\n"
      "_teratron() {{\n"
      "  local -a first=({}) second=()\n"
      "  local command=$words[2]\n"
      "  if (( CURRENT == 2 )); then\n    _describe command first\n    return\n  fi\n"
      "  case $command in\n{}  esac\n"
      "  shift words\n  (( --CURRENT ))\n"
      "  if (( $#second )); then\n"
      "    if (( CURRENT == 2 )); then\n      _describe command second\n      return\n    fi\n"
      "    command+=\" $words[2]\"\n    shift words\n    (( --CURRENT ))\n  fi\n"
      "  case $command in\n{}  esac\n}}\n\n"
      "if [[ $funcstack[1] == _teratron ]]; then\n  _teratron \"$@\"\nelse\n  compdef _teratron teratron\nfi\n",
      kVersion, kZshPrefixes, first, second, cases);
}

std::string fish_described(const std::string& word, const std::string& summary) {
  return " " + fish_quoted(word + "\t" + summary);
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string first, second, cases;
  for (const FirstWord& word : first_words(commands)) {
    first += fish_described(word.word, word.summary);
    if (word.family.empty()) continue;
    std::string described;
    for (const Command* command : word.family) described += fish_described(second_word(*command), command->summary);
    second += fmt::format("        case {}\n            printf '%s\\n'{}\n", word.word, described);
  }
  first += fish_described("--help", "lists the commands") + fish_described("--version", "prints the version");
  for (const Command& command : commands) {
    cases += command.text([&](const FieldList& fields) { return fish_completion(command.name, fields); });
  }
  return fmt::format(
      "# Completion of teratron {} in fish, made by `teratron completion fish`.\n"
      "function _teratron_first\n    printf '%s\\n'{}\nend\n\n"
      "function _teratron_second\n    switch $argv[1]\n{}    end\nend\n\n"
      "function _teratron_fields --no-scope-shadowing  # fills the caller's lists\n    switch $argv[1]\n{}    "
      "end\nend\n{}",
      kVersion, first, second, cases, kFishFunctions);
}

std::string script(Shell shell) {
  const std::vector<Command> commands = all_commands();
  switch (shell) {
    case Shell::kBash: return bash_script(commands);
    case Shell::kFish: return fish_script(commands);
    case Shell::kZsh: break;
  }
  return zsh_script(commands);
}

void run(const CompletionOptions& options) { print_result(script(options.shell)); }

}  // namespace

Command completion_command() {
  return make_command<CompletionOptions>("completion", "prints a script with which a shell completes command lines",
                                         run);
}

}  // namespace teratron
