// teratron completion: completion scripts for shells.
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/completion_files.h"
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

// Functions of the scripts walk command lines from the left, as options/command_line.cc. bash cuts words at "=", so
// --flag=value is three words; in fish it is one.
std::string_view functions(Shell shell) {
  switch (shell) {
    case Shell::kBash: return text_of(completion_files(), "bash_functions");
    case Shell::kFish: return text_of(completion_files(), "fish_functions");
    case Shell::kZsh: break;
  }
  return text_of(completion_files(), "zsh_functions");
}

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
      "_teratron_first='{}'\n{}\n{}",
      kVersion, fmt::join(first, " "), tables, functions(Shell::kBash));
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
      "#compdef teratron\n# Completion of teratron {} in zsh, made by `teratron completion zsh`.\n\n{}\n"
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
      kVersion, functions(Shell::kZsh), first, second, cases);
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
      "end\nend\n\n{}",
      kVersion, first, second, cases, functions(Shell::kFish));
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
