// Settings beside byte-level BPE's files: tokenizer_config.json and others.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/tokenizer_config.h"

namespace teratron {
namespace {

// Classes with GPT-2's splitter and merges, which add nothing to a text.
constexpr auto kBytePairClasses =
    std::to_array<std::string_view>({"GPT2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer"});

}  // namespace

void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source) {
  for (AddedToken& one : added) {
    const std::string& text = one.token.text;
    if (!one.refused.empty()) {
      throw_user_error("{}: its added token '{}' sets \"{}\", which changes the text around it; {}", file, text,
                       one.refused, "use a tokenizer without");
    }
    if (!one.is_special && !is_written_like_a_special_token(text)) {
      throw_user_error("{}: its added token '{}' is not special, and transformers finds it within words; {}", file,
                       text, "use a tokenizer without");
    }
    const bool is_known =
        std::ranges::any_of(source.added, [&](const ListedToken& token) { return token.text == text; });
    if (!is_known) source.added.push_back(std::move(one.token));
  }
}

void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair) {
  config.require_class(kBytePairClasses);
  // transformers' classes of this kind override the prefix space of tokenizer.json; its general ones do not.
  if (is_pair || config.is_of_class(kBytePairClasses)) {
    source.add_prefix_space = config.flag("add_prefix_space").value_or(false);
  }
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    if (is_pair && config.flag(key).value_or(false)) {
      config.refuse(fmt::format("its \"{}\" adds a token to every text; set it to false", key));
    }
  }
  take_added_tokens(config.added_tokens(), config.name(), source);
  if (std::string end = config.special_text("eos_token"); !end.empty()) source.end_of_text = std::move(end);
}

}  // namespace teratron
