// Words of data/papers and data/published. One that the program does not know is an error with its line: else a run
// would be of other settings in silence.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options/toml_parsing.h"

namespace teratron::plan {

// UserError with the node's file and line.
[[noreturn]] void throw_unknown_word(const toml::node& node, std::string_view key,
                                     const std::vector<std::string_view>& known);

// The words of an array, which may be left out.
std::vector<std::string> words_of(const toml::table& table, std::string_view key,
                                  const std::vector<std::string_view>& known);

// Value that the key's word stands for; "" in `known`: the key may be left out. UserError as throw_unknown_word().
template <class Value>
Value value_of_word(const toml::table& table, std::string_view key, const std::map<std::string_view, Value>& known) {
  const toml::node* node = table.get(key);
  const auto found = known.find(node == nullptr ? "" : node->value_or(std::string_view("no text")));
  if (found != known.end()) return found->second;
  std::vector<std::string_view> words;
  for (const auto& [word, value] : known) {
    if (!word.empty()) words.push_back(word);
  }
  throw_unknown_word(node == nullptr ? table : *node, key, words);
}

}  // namespace teratron::plan
