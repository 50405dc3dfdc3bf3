// Program `teratron`: runs the subcommand that the first words name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/term_list.h"
#include "options/reading.h"
#include "options/suggestion.h"
#include "runtime/program.h"

namespace teratron {
namespace {

bool is_help_flag(std::string_view word) { return word == "--help" || word == "-h"; }

bool asks_for_help(std::string_view word) { return is_help_flag(word) || word == "help"; }

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find(' ', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool begins_with(std::span<const std::string> words, std::span<const std::string> beginning) {
  return words.size() >= beginning.size() && std::ranges::equal(words.first(beginning.size()), beginning);
}

// Commands of a family such as "tokenizer": their names have `word` and a second word.
std::vector<Command> family(std::span<const Command> commands, const std::string& word) {
  std::vector<Command> members;
  for (const Command& command : commands) {
    if (command.name.starts_with(word + " ")) members.push_back(command);
  }
  return members;
}

std::string list_of(std::span<const Command> commands) {
  TermList list(style_for(stdout));
  for (const Command& command : commands) list.term(command.name, command.summary);
  return list.text();
}

// Headings of the list of commands, each before the first of its group.
constexpr auto kGroups = std::to_array<std::pair<std::string_view, const char*>>({
    {"train", "Training:"},
    {"eval loss", "Evaluation:"},
    {"generate", "Use:"},
    {"tokenizer train", "Tokenizers and data:"},
    {"checkpoint info", "Checkpoints:"},
    {"profile", "Planning:"},
    {"flags", "This program:"},
});

std::string general_help(std::span<const Command> commands) {
  const TextStyle style = style_for(stdout);
  TermList list(style);
  for (const Command& command : commands) {
    const auto group = std::ranges::find(kGroups, command.name, [](const auto& entry) { return entry.first; });
    if (group != kGroups.end()) list.heading(group->second);
    list.term(command.name, command.summary);
  }
  std::string end;
  for (const std::string& line : wrapped(
           "teratron COMMAND --help lists a command's flags. Exit codes: 0 done, 2 wrong input, 3 the machine failed "
           "(disk, memory, permission), 1 a bug of Teratron, 128 + N ended in good order after signal N.",
           style.columns)) {
    end += line + "\n";
  }
  return fmt::format(
      "Teratron {}: trains, evaluates and serves transformers: GPT-2, Llama, BERT.\n\n"
      "usage: teratron [--color auto|always|never] COMMAND [--flag value ...]\n\n"
      "  teratron tokenizer train book.txt --vocab-size 1024 --out tok\n"
      "  teratron data tokenize book.txt --tokenizer tok --out corpus\n"
      "  teratron train --model tiny --data-path corpus --train-iters 200 --save run\n"
      "  teratron generate --load run --prompt \"The \"\n\n{}\n{}",
      kVersion, list.text(), end);
}

void run_or_help(const Command& command, std::span<const std::string> arguments) {
  const auto flags_end = std::ranges::find(arguments, "--");
  if (std::none_of(arguments.begin(), flags_end, is_help_flag)) return command.run(arguments);
  const std::string usage = command.text(usage_text);
  const auto paragraph = [](const std::string& text) {
    return fmt::format("{}\n\n", fmt::join(wrapped(text, style_for(stdout).columns), "\n"));
  };
  print_result(paragraph(fmt::format("teratron {}: {}", command.name, command.summary)) +
               paragraph(fmt::format("usage: teratron {}{}{}", command.name, usage.empty() ? "" : " ", usage)) +
               command.text([](const FieldList& fields) { return help_text(fields, style_for(stdout)); }));
}

// Commands whose second word is `word`: "data tokenize" for "tokenize".
std::vector<std::string> with_second_word(std::span<const Command> commands, const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    const std::vector<std::string> name = words_of(command.name);
    if (name.size() == 2 && name[1] == word) names.push_back(fmt::format("'{}'", command.name));
  }
  return names;
}

[[noreturn]] void throw_unknown_first(std::span<const Command> commands, const std::string& unknown) {
  if (const std::vector<std::string> whole = with_second_word(commands, unknown); !whole.empty()) {
    throw_user_error("unknown command '{}'; did you mean {}?", unknown, fmt::join(whole, " or "));
  }
  std::vector<std::string> first, second;
  for (const Command& command : commands) {
    const std::vector<std::string> name = words_of(command.name);
    first.push_back(name[0]);
    if (name.size() == 2) second.push_back(name[1]);
  }
  if (const std::string nearest = nearest_name(unknown, first); !nearest.empty()) {
    throw_user_error("unknown command '{}'; did you mean '{}'?", unknown, nearest);
  }
  if (const std::string nearest = nearest_name(unknown, second); !nearest.empty()) {
    throw_user_error("unknown command '{}'; did you mean {}?", unknown,
                     fmt::join(with_second_word(commands, nearest), " or "));
  }
  throw_user_error("unknown command '{}'; teratron --help lists the commands", unknown);
}

[[noreturn]] void throw_unknown(std::span<const Command> commands, std::span<const std::string> words) {
  const std::vector<Command> members = family(commands, words[0]);
  if (members.empty()) throw_unknown_first(commands, words[0]);
  std::vector<std::string> names, known;
  for (const Command& command : members) {
    names.push_back(command.name);
    known.push_back(words_of(command.name)[1]);
  }
  if (words.size() == 1) {
    throw_user_error("'teratron {}' needs one more word; there are: {}", words[0], fmt::join(names, ", "));
  }
  const std::string nearest = nearest_name(words[1], known);
  if (!nearest.empty()) {
    throw_user_error("unknown command '{0} {1}'; did you mean '{0} {2}'?", words[0], words[1], nearest);
  }
  throw_user_error("unknown command '{} {}'; there are: {}", words[0], words[1], fmt::join(names, ", "));
}

struct ProgramOptions {
  Colours color = Colours::kAuto;
};

FieldList fields_of(ProgramOptions& o) {
  FieldList list;
  add_color_field(list, o.color, "colours");
  return list;
}

// Takes --color WHEN out of the words: before a command and beside --help it is a flag of the program, elsewhere one of
// the command. UserError: no WHEN, or another one.
void take_color(std::vector<std::string>& words) {
  const auto is_color = [](std::string_view word) { return word == "--color" || word.starts_with("--color="); };
  const auto end = std::ranges::find(words, "--");
  const bool has_help = (!words.empty() && asks_for_help(words[0])) || std::any_of(words.begin(), end, is_help_flag);
  const auto at = has_help ? std::find_if(words.begin(), end, is_color) : words.begin();
  if (at == end || !is_color(*at)) return;
  const auto after = at + (*at == "--color" && at + 1 != end ? 2 : 1);
  set_colours(read_options<ProgramOptions>(std::vector(at, after)).color);
  words.erase(at, after);
}

// Runs the command that the first words name with the arguments after them, or prints help or the version to standard
// output. UserError: no such command (with a suggestion). Throws errors of the command, too.
void dispatch(std::span<const Command> commands, std::span<const std::string> words) {
  if (words.empty()) throw_user_error("no command; teratron --help lists them");
  if (asks_for_help(words[0]) && (words.size() == 1 || asks_for_help(words[1])))
    return print_result(general_help(commands));
  if (asks_for_help(words[0])) {  // help of a command
    std::vector<std::string> turned(words.begin() + 1, words.end());
    turned.emplace_back("--help");
    return dispatch(commands, turned);
  }
  if (words[0] == "--version") return print_result(fmt::format("teratron {}\n", kVersion));
  for (const Command& command : commands) {
    const std::vector<std::string> name = words_of(command.name);
    if (begins_with(words, name)) return run_or_help(command, words.subspan(name.size()));
  }
  const std::vector<Command> members = family(commands, words[0]);
  if (!members.empty() && words.size() == 2 && asks_for_help(words[1])) return print_result(list_of(members));
  throw_unknown(commands, words);
}

}  // namespace
}  // namespace teratron

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return teratron::run_program([&] {
    teratron::take_color(words);
    teratron::dispatch(teratron::all_commands(), words);
  });
}
