// What shells complete of a command: its part of the scripts that `teratron completion` writes (cli/completion.cc).
#pragma once

#include <string>
#include <string_view>

#include "options/fields.h"

namespace teratron {

// As one word of a shell, whatever is in it.
std::string shell_quoted(std::string_view text);

// Entries of three tables: flags[COMMAND] has the flags, values["COMMAND --flag"] what completes the flag's value, and
// arguments[COMMAND] what completes those without a flag. What completes a value is "words:A,B", "files", "folders",
// "prefixes" (of .idx files) or "text" (nothing does), with a "*" where several values follow. A switch has none.
std::string bash_completion(const std::string& command, const FieldList& fields);

// The case COMMAND of a function, which calls _arguments with every flag and argument.
std::string zsh_completion(const std::string& command, const FieldList& fields);

}  // namespace teratron
