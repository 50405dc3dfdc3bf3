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

enum class Shell { kBash, kZsh };

struct CompletionOptions {
  Shell shell = Shell::kBash;
};

FieldList fields_of(CompletionOptions& o) {
  FieldList list;
  list.add_choice("shell", o.shell, {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}}, "shell that reads the script")
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

void run(const CompletionOptions& options) {
  const std::vector<Command> commands = all_commands();
  print_result(options.shell == Shell::kBash ? bash_script(commands) : zsh_script(commands));
}

}  // namespace

Command completion_command() {
  return make_command<CompletionOptions>("completion", "prints a script with which a shell completes command lines",
                                         run);
}

}  // namespace teratron
