// Texts made of a list of fields: --help, the manual page, the start-up table, shell completion, and the TOML file that
// gives the same values again.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "console/term_list.h"
#include "options/fields.h"

namespace teratron {

// TOML file of the fields. Reading it (reading.h) gives the same values, except of fields that `leaves_out` selects.
std::string to_toml(const FieldList& fields, const std::function<bool(const Field&)>& leaves_out = {});

// Values of TOML: a basic string of as_utf8(text), and the shortest floating-point number that reads back to the same
// bits.
std::string toml_text(const std::string& text);
std::string toml_number(double number);

// Text of any bytes as UTF-8, for all texts of a file, since paths are bytes. UTF-8 stays as it is. Other becomes
// "bytes:" and the text with %XX for each byte that is not UTF-8, and for "%": "bytes:/data/caf%E9". So does text that
// itself begins with "bytes:".
std::string as_utf8(std::string_view text);
// Inverse of as_utf8(). A "%" that no two hexadecimal digits follow, as other programs may write it, stays.
std::string from_utf8(std::string_view text);

// Usage: needed flags, then arguments without a flag. "IN OUT", "--out PREFIX [--flag value ...] FILE...".
std::string usage_text(const FieldList& fields);

// Flags by group, each with its help and its current value in brackets.
std::string help_text(const FieldList& fields, TextStyle style = {});

// Part of a manual page with the same content, for roff with the macros man(7).
std::string man_text(const FieldList& fields);
std::string roff_escaped(std::string_view text);  // text that roff prints as it is

// Table "--seq-length 256", one line per flag, by group. Hidden flags are in it only if they were given.
std::string value_table(const FieldList& fields);

// Quotes text as one word of a shell.
std::string shell_quoted(std::string_view text);

// Part of a command in the script of `teratron completion bash`: entries of three tables. flags[COMMAND] has the flags,
// values["COMMAND --flag"] the completion of the flag's value, arguments[COMMAND] the completions of arguments without
// a flag. A completion is "words:A,B", "files", "folders", "prefixes" (of .idx files) or "text" (none), with a "*"
// where several values follow. A switch has no values.
std::string bash_completion(const std::string& command, const FieldList& fields);

// Case COMMAND of the zsh function: calls _arguments with every flag and argument.
std::string zsh_completion(const std::string& command, const FieldList& fields);

// Case COMMAND of the fish function that fills four lists: flags; values, the completion of each flag's value as in the
// script of bash, empty for a switch; helps; arguments, the completions of arguments without a flag.
std::string fish_completion(const std::string& command, const FieldList& fields);
std::string fish_quoted(std::string_view text);  // one word of fish

}  // namespace teratron
