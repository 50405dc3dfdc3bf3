#include "reproduction/data_words.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace teratron::plan {

void throw_unknown_word(const toml::node& node, std::string_view key, const std::vector<std::string_view>& known) {
  throw_user_error("{}:{}: '{}' is '{}'; there are {}", *node.source().path, node.source().begin.line, key,
                   node.value_or(std::string("no text")), fmt::join(known, ", "));
}

std::vector<std::string> words_of(const toml::table& table, std::string_view key,
                                  const std::vector<std::string_view>& known) {
  std::vector<std::string> words;
  if (const toml::array* array = table[key].as_array()) {
    for (const toml::node& node : *array) {
      words.push_back(node.value_or(std::string()));
      if (std::ranges::find(known, words.back()) == known.end()) throw_unknown_word(node, key, known);
    }
  }
  return words;
}

}  // namespace teratron::plan
