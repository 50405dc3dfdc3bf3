// Tokens of a template, with the white space rules that transformers sets: trim_blocks and lstrip_blocks
// (jinja.palletsprojects.com, Template Designer Documentation, Whitespace Control).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::jinja {

struct Token {
  enum class Kind {
    kData,
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::string text;  // of an operator its signs, of a string its characters
  int line = 1;
  std::int64_t integer = 0;
  double number = 0;

  bool is(std::string_view sign) const { return kind == Kind::kOperator && text == sign; }
  bool is_name(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// The tokens of `source`, which is UTF-8; the last one is of kEnd. Error: an unknown sign, a comment or string without
// end.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace teratron::jinja
