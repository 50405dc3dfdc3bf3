#include "tokenizer/gguf_vocabulary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe/bpe_files.h"

namespace teratron {
namespace {

// llama.cpp's numbers of a token's type.
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

constexpr std::string_view kUnknownText = "<unk>";

// A splitter's name in llama.cpp, which may imply that merges are ignored.
struct NamedSplitter {
  BpeSplitter splitter;
  bool ignore_merges;
  std::string_view name;
};
constexpr NamedSplitter kSplitters[] = {{BpeSplitter::kGpt2, false, "gpt-2"},
                                        {BpeSplitter::kLlama3, true, "llama-bpe"},
                                        {BpeSplitter::kLlama3, false, "dbrx"},
                                        {BpeSplitter::kQwen2, false, "qwen2"},
                                        {BpeSplitter::kDigits, false, "smollm"}};

using Phrases = std::vector<std::string>;

std::vector<std::int32_t> types_of(const BpeModel& model) {
  std::vector<std::int32_t> types(model.tokens.size(), kNormal);
  const auto set = [&](const std::vector<std::int32_t>& ids, TokenType type) {
    for (const std::int32_t id : ids) types[static_cast<std::size_t>(id)] = type;
  };
  set(model.byte_tokens, kByte);
  set(model.found, kUserDefined);
  set(model.special, kControl);
  for (const std::int32_t id : model.special) {
    auto& type = types[static_cast<std::size_t>(id)];
    if (model.pipeline.is_sentence_piece() && model.tokens[static_cast<std::size_t>(id)] == kUnknownText) {
      type = kUnknown;
    }
  }
  return types;
}

// SentencePiece's merges as scores of the tokens that they make: -1 for the first merge, then downwards.
class MergeScores {
 public:
  MergeScores(const BpeModel& model, const std::vector<std::int32_t>& types) : model_(model) {
    for (std::size_t id = 0; id < model.tokens.size(); ++id) {
      if (types[id] == kNormal) ids_.emplace(model.tokens[id], static_cast<std::int32_t>(id));
    }
    for (const BpeMerge& merge : model.merges) pairs_.insert(pair_key(merge.left, merge.right));
  }

  std::vector<float> find(Phrases& faults) const {
    std::vector<float> scores(model_.tokens.size(), 0);
    std::int32_t last = -1;
    std::int64_t rank = 0;
    for (const BpeMerge& merge : model_.merges) {
      if (merge.merged == last) continue;
      last = merge.merged;
      float& score = scores[static_cast<std::size_t>(last)];
      if (score != 0) {
        faults.push_back(
            fmt::format("merges of '{}' stand apart in its list", model_.tokens[static_cast<std::size_t>(last)]));
        return scores;
      }
      score = static_cast<float>(-++rank);
    }
    for (float& score : scores) {
      if (score == 0) score = static_cast<float>(-rank - 1);
    }
    find_missing(faults);
    return scores;
  }

 private:
  // Adds a fault for the first two tokens that llama.cpp joins and the merges do not.
  void find_missing(Phrases& faults) const {
    for (const auto& [text, id] : ids_) {
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        if (continues_character(text[cut])) continue;
        const auto left = ids_.find(text.substr(0, cut)), right = ids_.find(text.substr(cut));
        if (left == ids_.end() || right == ids_.end() || pairs_.contains(pair_key(left->second, right->second)))
          continue;
        faults.push_back(
            fmt::format("its merges do not join '{}' and '{}', whose text is a token", left->first, right->first));
        return;
      }
    }
  }

  const BpeModel& model_;
  std::map<std::string_view, std::int32_t> ids_;
  std::unordered_set<std::uint64_t> pairs_;
};

void describe_sentence_piece(const BpeModel& model, GgufVocabulary& vocabulary, Phrases& faults) {
  vocabulary.model = "llama";
  vocabulary.scores = MergeScores(model, vocabulary.types).find(faults);
  vocabulary.adds_space = model.pipeline.prefix != BpePrefix::kNever;
  if (model.pipeline.prefix == BpePrefix::kUnlessSpace || model.pipeline.prefix == BpePrefix::kUnlessSpaceAtStart) {
    vocabulary.notes.emplace_back(
        "llama.cpp puts a space before each text and after each special token: ids of texts that begin with a space, "
        "or "
        "have special tokens inside, differ from Teratron's");
  }
  if (model.pipeline.splitter != BpeSplitter::kMetaspace) return;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (vocabulary.types[id] != kNormal || model.tokens[id].find(' ', 1) == std::string::npos) continue;
    faults.push_back(fmt::format("every space begins a word, and the token '{}' has one inside", model.tokens[id]));
    return;
  }
}

void describe_byte_level(const BpeModel& model, GgufVocabulary& vocabulary, Phrases& faults) {
  vocabulary.model = "gpt2";
  const auto named = std::ranges::find_if(kSplitters, [&](const NamedSplitter& one) {
    return one.splitter == model.pipeline.splitter && one.ignore_merges == model.pipeline.ignore_merges;
  });
  if (named == std::end(kSplitters)) {
    faults.emplace_back(
        "words that are tokens are taken before merges (ignore_merges), which llama.cpp has for Llama 3's");
  } else {
    vocabulary.splitter = named->name;
  }
  if (model.pipeline.prefix != BpePrefix::kNever)
    faults.emplace_back("a space is put before a text (add_prefix_space)");
  if (model.pipeline.nfc) {
    vocabulary.notes.emplace_back(
        "llama.cpp does not compose characters (Unicode's NFC): ids of texts in another form differ from Teratron's");
  }
  for (const BpeMerge& merge : model.merges) {
    vocabulary.merges.push_back(fmt::format("{} {}", vocabulary.tokens[static_cast<std::size_t>(merge.left)],
                                            vocabulary.tokens[static_cast<std::size_t>(merge.right)]));
  }
}

// Adds a fault for two tokens with the same text, at which llama.cpp aborts.
void find_equal_tokens(const GgufVocabulary& vocabulary, Phrases& faults) {
  std::unordered_set<std::string_view> texts;
  for (const std::string& text : vocabulary.tokens) {
    if (texts.insert(text).second) continue;
    faults.push_back(fmt::format("two tokens are written '{}'", text));
    return;
  }
}

void fill_up(GgufVocabulary& vocabulary, std::int64_t vocab_size) {
  for (auto id = std::ssize(vocabulary.tokens); id < vocab_size; ++id) {
    vocabulary.tokens.push_back(fmt::format("[PAD{}]", id));
    vocabulary.types.push_back(kUnused);
    if (!vocabulary.scores.empty()) vocabulary.scores.push_back(vocabulary.scores.front());
  }
}

}  // namespace

GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, std::int64_t vocab_size) {
  if (tokenizer.kind() != TokenizerKind::kBytePair) {
    throw_user_error("the tokenizer is WordPiece, and GGUF files are written with BPE alone");
  }
  const BpeModel& model = tokenizer.model();
  GgufVocabulary vocabulary{.tokens = spell_tokens(model), .types = types_of(model)};
  Phrases faults;
  if (model.pipeline.is_sentence_piece()) {
    describe_sentence_piece(model, vocabulary, faults);
  } else {
    describe_byte_level(model, vocabulary, faults);
  }
  vocabulary.beginning = tokenizer.beginning_of_text();
  vocabulary.adds_beginning = vocabulary.beginning.has_value();
  vocabulary.unknown = tokenizer.special_token(kUnknownText);
  const std::optional<std::int32_t> end = tokenizer.end_of_text();
  if (!end)
    faults.emplace_back(
        "no token that ends a text is named (eos_token in tokenizer_config.json), and llama.cpp would take another for "
        "it");
  vocabulary.end_of_text = end.value_or(0);
  fill_up(vocabulary, vocab_size);
  find_equal_tokens(vocabulary, faults);
  if (!faults.empty())
    throw_user_error("llama.cpp would make other ids than the tokenizer: {}", fmt::join(faults, "; "));
  return vocabulary;
}

}  // namespace teratron
