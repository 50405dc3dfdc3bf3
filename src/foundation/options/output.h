// A list of fields shown to people: --help, the start-up table, and the TOML file that gives the same values again.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "options/fields.h"

namespace teratron {

// Reading this file (reading.h) into the same fields gives the same values, but of those that it leaves out.
std::string to_toml(const FieldList& fields, const std::function<bool(const Field&)>& leaves_out = {});

// As values of TOML: a basic string (of as_utf8's text, which reading turns back), and the shortest number that reads
// back to the same bits and as a floating point number.
std::string toml_text(const std::string& text);
std::string toml_number(double number);

// "IN OUT", "--out PREFIX [--flag value ...] FILE...": the flags that are needed, then the arguments without a flag.
std::string usage_text(const FieldList& fields);

// Flags by group, each with what it does and its value now (in brackets), at most 100 columns wide.
std::string help_text(const FieldList& fields);

// The same as part of a manual page, for roff with the macros man(7).
std::string man_text(const FieldList& fields);
std::string roff_escaped(std::string_view text);  // that reads as it is written, in lines or alone

// "--seq-length 256", one line a flag, by group, aligned; hidden flags only where they were given.
std::string value_table(const FieldList& fields);

}  // namespace teratron
