#include "options/toml_parsing.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "options/reading.h"

namespace teratron {
namespace {

// Rest of `text` after the string at its beginning. A string of one line ends at the line's end even if it is not
// closed; the parser refuses it there.
std::string_view after_string(std::string_view text) {
  const char quote = text.front();
  const bool has_escapes = quote == '"';
  const std::string closing(text.starts_with(std::string(3, quote)) ? 3 : 1, quote);
  text.remove_prefix(closing.size());
  while (!text.empty() && !text.starts_with(closing)) {
    if (closing.size() == 1 && text.front() == '\n') return text;
    text.remove_prefix(has_escapes && text.front() == '\\' ? std::min<std::size_t>(2, text.size()) : 1);
  }
  text.remove_prefix(std::min(closing.size(), text.size()));
  // Up to two of five quotes at the end are the string's.
  for (int i = 0; i < 2 && closing.size() == 3 && text.starts_with(quote); ++i) text.remove_prefix(1);
  return text;
}

// Beginning of the first key with too many parts. Dots separate the parts of a key. They also stand in numbers, once,
// and in strings and comments, which are skipped.
std::optional<std::string_view> find_deep_key(std::string_view text) {
  int parts = 1;
  while (!text.empty()) {
    const char byte = text.front();
    if (byte == '"' || byte == '\'') {
      text = after_string(text);
      continue;
    }
    if (byte == '#') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (std::string_view("\n=,[]{}").find(byte) != std::string_view::npos) parts = 1;
    if (byte == '.' && ++parts > kMostKeyParts) return text;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& name) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  while (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw_user_error("{}: not valid TOML: it is UTF-16; save it as UTF-8", name);
  }
  if (const auto deep = find_deep_key(text)) {
    throw_user_error("{}:{}: a key of more than {} parts; no setting is nested like that", name,
                     1 + std::count(text.data(), deep->data(), '\n'), kMostKeyParts);
  }
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw UserError(
        printable(fmt::format("{}:{}: not valid TOML: {}", name, error.source().begin.line, error.description())));
  }
}

}  // namespace teratron
