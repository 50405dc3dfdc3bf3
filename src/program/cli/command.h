// Interface of a subcommand. A file of src/program/cli holds one:
//
//   struct DataInfoOptions { std::filesystem::path file, json; };   options with their defaults
//   FieldList fields_of(DataInfoOptions& options);                  the flags and arguments (options/fields.h)
//   Faults DataInfoOptions::faults() const;                         optional: faults beside ranges of fields
//   void run(const DataInfoOptions& options);                       does it; errors are exceptions (base/error.h)
//
// and one function, listed in commands.h, that returns
//
//   make_command<DataInfoOptions>("data info", "shows what a tokenised corpus holds", run);
//
// --help, unknown flags, missing arguments, outputs that are inputs too, and exit codes need no work.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/faults.h"
#include "options/output.h"
#include "options/reading.h"

namespace teratron {

// Field::written_endings of a corpus (PREFIX.bin and the rest), and of a name that may also be a file of JSON lines.
std::vector<std::string> corpus_files();
std::vector<std::string> corpus_or_lines();

// Checks the files of a command before it runs (files_of_command.cc). UserError: it would write a file that it reads,
// by any name, or write one twice, or where no file can be; --json would replace a file that holds no JSON, or has no
// folder; it would read standard input or another pipe twice. A folder or pattern stands for the files that commands
// read in it.
void require_files(const FieldList& fields);

using FieldText = std::function<std::string(const FieldList&)>;

struct Command {
  std::string name;                                       // one or two words: "train", "tokenizer encode"
  std::string summary;                                    // in the third person, without a full stop
  std::function<std::string(const FieldText&)> text;      // text made of its fields with their defaults
  std::function<void(std::span<const std::string>)> run;  // takes the arguments after the name
};

// The options of a command as the ranks of several processes compare them (RankLauncher::run).
template <class Options>
std::string options_text(Options options) {
  return to_toml(fields_of(options));
}

// Makes a command. `defaults` makes the options that the command line changes.
template <class Options>
Command make_command(std::string_view name, std::string_view summary, void (*run)(const Options&),
                     std::function<Options()> defaults) {
  const auto text = [defaults](const FieldText& make) {
    Options options = defaults();
    return make(fields_of(options));
  };
  return {.name = std::string(name),
          .summary = std::string(summary),
          .text = text,
          .run = [run, defaults](std::span<const std::string> arguments) {
            Options options = read_options<Options>(arguments, defaults());
            require_files(fields_of(options));
            run(options);
          }};
}

template <class Options>
Command make_command(std::string_view name, std::string_view summary, void (*run)(const Options&)) {
  return make_command<Options>(name, summary, run, [] { return Options(); });
}

}  // namespace teratron
