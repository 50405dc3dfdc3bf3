#include "data/data_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "data/samples/blend_order.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

std::optional<double> number_in(std::string_view word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool has_weights(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) { return number_in(word).has_value(); });
}

// The prefixes that match a pattern. A name that is no pattern, exists as written, or matches nothing stands for
// itself.
std::vector<std::string> matches_of(const std::string& name) {
  std::vector<std::string> prefixes;
  if (is_pattern(idx_path(name))) {
    for (std::filesystem::path& match : find_matches(idx_path(name))) {
      prefixes.push_back(match.replace_extension().string());
    }
  }
  if (prefixes.empty()) return {name};
  std::ranges::sort(prefixes);
  return prefixes;
}

// The shards of a blend's corpus, from its word.
std::vector<std::string> shards_of(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(idx_path(word), ignored)) return {word};
  std::vector<std::string> shards;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    std::ranges::copy(matches_of(word.substr(begin, end - begin)), std::back_inserter(shards));
    begin = end + 1;
  }
  return shards;
}

struct NamedCorpus {
  double weight = 1;
  std::vector<std::string> shards;
};

// Reads words without faults.
std::vector<NamedCorpus> parse_data_path(std::span<const std::string> words) {
  if (!has_weights(words)) return {{.shards = without_patterns(words)}};
  std::vector<NamedCorpus> corpora;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    corpora.push_back({.weight = number_in(words[i]).value(), .shards = shards_of(words[i + 1])});
  }
  return corpora;
}

}  // namespace

std::vector<double> weights_of(std::span<const std::string> words) {
  std::vector<double> weights;
  for (const std::string& word : words) {
    if (const auto number = number_in(word)) weights.push_back(*number);
  }
  return weights;
}

std::vector<std::string> without_patterns(std::span<const std::string> words) {
  std::vector<std::string> result;
  const bool is_blend = has_weights(words);
  for (const std::string& word : words) {
    if (is_blend) {
      result.push_back(number_in(word) ? word : fmt::format("{}", fmt::join(shards_of(word), ",")));
    } else {
      std::ranges::copy(matches_of(word), std::back_inserter(result));
    }
  }
  return result;
}

std::filesystem::path absolute_name(const std::filesystem::path& name) {
  if (name.empty()) return name;
  const std::filesystem::path whole = std::filesystem::absolute(name), shorter = whole.lexically_normal();
  std::error_code error;  // where a folder is a link, its parent differs from that of its target
  return std::filesystem::equivalent(whole.parent_path(), shorter.parent_path(), error) ? shorter : whole;
}

std::vector<std::string> with_absolute_names(std::span<const std::string> words) {
  const auto absolute = [](const std::string& name) { return absolute_name(name).string(); };
  const bool is_blend = has_weights(words);
  std::vector<std::string> result;
  for (const std::string& word : words) {
    if (!is_blend) {
      result.push_back(absolute(word));
    } else if (number_in(word)) {
      result.push_back(word);
    } else {
      std::vector<std::string> shards = shards_of(word);
      std::ranges::transform(shards, shards.begin(), absolute);
      // A parent folder with a comma in its name would be read as two shards.
      const bool is_list = shards.size() == 1 || std::ranges::none_of(shards, [](const std::string& shard) {
                             return shard.find(',') != std::string::npos;
                           });
      result.push_back(is_list ? fmt::format("{}", fmt::join(shards, ",")) : word);
    }
  }
  return result;
}

Faults data_path_faults(Flag flag, std::span<const std::string> words) {
  Faults faults;
  faults.add_if(std::ranges::count(words, "") > 0, "{} has an empty name; give PREFIX of PREFIX.bin and PREFIX.idx",
                flag);
  if (!has_weights(words) || !faults.empty()) return faults;
  double total = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::optional<double> weight = number_in(words[i]);
    if (!weight) {
      faults.add(
          "{} has '{}' in place of a weight; give every corpus a number before it (0.7 a 0.3 b), or none (a corpus "
          "called 7 is ./7)",
          flag, words[i]);
      return faults;
    }
    if (i + 1 == words.size() || number_in(words[i + 1])) {
      faults.add(
          "{} has the weight {} without a corpus after it; write 0.7 a 0.3 b, and ./{} for a corpus of that name", flag,
          words[i], words[i]);
      return faults;
    }
    faults.add_if(*weight < 0, "{} gives '{}' the weight {}; it must be at least 0", flag, words[i + 1], words[i]);
    total += std::max(0.0, *weight);
  }
  faults.add_if(faults.empty() && total == 0, "{} has no weight above 0: nothing would be read", flag);
  const std::size_t most = BlendOrder::kMostCorpora;
  faults.add_if(words.size() / 2 > most, "{} names {} corpora; a blend has at most {}: join some as shards of one",
                flag, words.size() / 2, most);
  return faults;
}

Faults one_corpus_faults(Flag flag, std::span<const std::string> words) {
  Faults faults = data_path_faults(flag, words);
  faults.add_if(
      faults.empty() && has_weights(words),
      "{} is a blend; one corpus is scored at a time: give its name, or the names of its shards, without weights",
      flag);
  return faults;
}

std::vector<WeightedCorpus> open_corpora(std::span<const std::string> words) {
  std::vector<WeightedCorpus> corpora;
  std::set<std::filesystem::path> seen;
  for (const NamedCorpus& named : parse_data_path(words)) {
    if (named.weight == 0) continue;
    const std::vector<std::filesystem::path> prefixes(named.shards.begin(), named.shards.end());
    for (const std::filesystem::path& prefix : prefixes) {
      if (seen.insert(std::filesystem::weakly_canonical(idx_path(prefix))).second) continue;
      throw_user_error("'{}' is named twice; give each corpus and each shard once, with a weight for all of it",
                       prefix.string());
    }
    corpora.push_back({named.weight, std::make_shared<const IndexedDataset>(IndexedDataset::open(prefixes))});
  }
  return corpora;
}

std::shared_ptr<const IndexedDataset> open_corpus(std::span<const std::string> words) {
  check(!has_weights(words), "open_corpus: weights");
  return open_corpora(words).front().dataset;
}

}  // namespace teratron
