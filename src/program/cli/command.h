// How a subcommand is written. A file of src/program/cli holds one subcommand:
//
//   struct DataInfoOptions { std::filesystem::path file, json; };   what the user can say, with its defaults
//   FieldList fields_of(DataInfoOptions& options);                  the flags and arguments (options/fields.h)
//   Faults DataInfoOptions::faults() const;                         optional: what is wrong, beside ranges of fields
//   void run(const DataInfoOptions& options);                       does it; errors are exceptions (base/error.h)
//
// and one function, listed in commands.h, that returns
//
//   make_command<DataInfoOptions>("data info", "shows what a tokenised corpus holds", run);
//
// --help, unknown flags, missing arguments, outputs that are inputs too (files_of_command.h) and exit codes are taken
// care of.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/faults.h"
#include "cli/files_of_command.h"
#include "options/output.h"
#include "options/reading.h"

namespace teratron {

using FieldText = std::function<std::string(const FieldList&)>;

struct Command {
  std::string name;                                       // one or two words: "train", "tokenizer encode"
  std::string summary;                                    // what it does, in the third person, without a full stop
  std::function<std::string(const FieldText&)> text;      // made of its flags and arguments, with their defaults
  std::function<void(std::span<const std::string>)> run;  // with the arguments after the name
};

// `defaults` makes the options that the command line is read into.
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
            require_separate_files(fields_of(options));
            run(options);
          }};
}

template <class Options>
Command make_command(std::string_view name, std::string_view summary, void (*run)(const Options&)) {
  return make_command<Options>(name, summary, run, [] { return Options(); });
}

}  // namespace teratron
