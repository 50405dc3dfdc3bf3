#include "corpus/clean/clean_stage.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "corpus/clean/text_repair.h"
#include "data/text/json_members.h"

namespace teratron {
namespace {

class CleanStage final : public Stage {
 public:
  explicit CleanStage(CleanOptions options) : options_(std::move(options)) {
    check(options_.min_tokens <= 0 || options_.tokenizer.has_value(), "clean: tokens are counted with a tokenizer");
  }

  std::string_view name() const override { return "clean"; }

  StageOutput process(Document document) const override {
    if (options_.url_rules) {
      const auto url = string_member(document.record, options_.url_key);
      if (url) {
        if (auto drop = options_.url_rules->judge(*url))
          return dropped(std::move(drop->reason), std::move(drop->detail));
      }
    }
    std::string text = repair_text(document.text);
    if (!options_.keep_newlines) text = remove_needless_newlines(text);
    document.changed = text != document.text;
    document.text = std::move(text);
    if (options_.min_tokens > 0 && !has_tokens(*options_.tokenizer, document.text, options_.min_tokens)) {
      const auto tokens = options_.tokenizer->encode(document.text).size();
      return dropped("short", fmt::format("{} tokens of {}", tokens, options_.min_tokens));
    }
    return kept(std::move(document));
  }

  std::optional<Drop> admit(const Document& document) override {
    if (!options_.url_rules) return std::nullopt;
    std::string_view quoted_url, piece_of;  // as written
    visit_members(document.record, [&](const std::string& key, std::string_view value) {
      if (key == options_.url_key) quoted_url = value;
      if (key == kPieceOf) piece_of = value;
      return true;
    });
    if (!quoted_url.starts_with('"')) return std::nullopt;
    const std::string url = json_string_value(quoted_url);
    const KeptPage page{.page = hash_of(page_key(*parse_url(url))),  // process() has parsed it
                        .piece_of = hash_of(piece_of)};
    const auto [earlier, is_new] = kept_.try_emplace(page.page, page.piece_of);
    if (!is_new) {
      if (page.piece_of != kNoPiece && page.piece_of == earlier->second) return std::nullopt;
      return Drop{"duplicate url", url};
    }
    state_delta_.append(reinterpret_cast<const char*>(&page), sizeof page);
    return std::nullopt;
  }

  std::string take_state_delta() override { return std::exchange(state_delta_, {}); }
  void restore_state(std::string_view delta) override {
    for (KeptPage page; delta.size() >= sizeof page; delta.remove_prefix(sizeof page)) {
      std::memcpy(&page, delta.data(), sizeof page);
      kept_.emplace(page.page, page.piece_of);
    }
  }

 private:
  static constexpr std::uint64_t kNoPiece = 0;
  // Hashes of a page's key and of the mark of its first kept document (kPieceOf).
  struct KeptPage {
    std::uint64_t page = 0, piece_of = kNoPiece;
  };
  static std::uint64_t hash_of(std::string_view text) {
    return text.empty() ? kNoPiece : ::XXH3_64bits(text.data(), text.size());
  }

  CleanOptions options_;
  std::unordered_map<std::uint64_t, std::uint64_t> kept_;  // KeptPage::piece_of by KeptPage::page
  std::string state_delta_;                                // KeptPages since the last take_state_delta()
};

}  // namespace

bool has_tokens(const Tokenizer& tokenizer, std::string_view text, std::int64_t least) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, least));
  std::vector<std::int32_t> tokens;
  tokenizer.encode_beginning_to(text, wanted, tokens);
  return tokens.size() >= wanted;
}

std::unique_ptr<Stage> make_clean_stage(CleanOptions options) {
  return std::make_unique<CleanStage>(std::move(options));
}

void CleanSettings::add_fields(FieldList& list) {
  list.add("tokenizer", &tokenizer, "DIR", "folder of the tokenizer that counts tokens");
  list.add("min-tokens", &min_tokens, "N", "drop documents with fewer tokens").between(0);
  list.add("keep-newlines", &keep_newlines, "", "keep line ends inside sentences, and empty lines");
  list.add("url-key", &url_key, "KEY", "the URL of a .jsonl line or .parquet row is under this key");
  list.add("url-lists", &url_lists, "DIR",
           "folder with domains.txt and extensions.txt of documents to drop; empty: the installed lists");
  list.add("no-url-rules", &no_url_rules, "", "ignore URLs");
}

Faults CleanSettings::faults(bool runs) const {
  Faults faults;
  faults.add_if(runs && min_tokens > 0 && tokenizer.empty(),
                "{} counts tokens; name the tokenizer's folder with {}, or give 0", Flag{"min-tokens"},
                Flag{"tokenizer"});
  return faults;
}

std::filesystem::path CleanSettings::lists() const {
  if (no_url_rules) return {};
  return url_lists.empty() ? installed_url_lists() : url_lists;
}

std::vector<std::filesystem::path> CleanSettings::files_read() const {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : {tokenizer, lists()}) {
    if (!folder.empty()) files.push_back(folder);
  }
  return files;
}

std::unique_ptr<Stage> CleanSettings::make(const StreamOptions&) const {
  CleanOptions options{.min_tokens = min_tokens, .keep_newlines = keep_newlines, .url_key = url_key};
  if (min_tokens > 0) options.tokenizer = Tokenizer::load(tokenizer);
  if (!no_url_rules) {
    const std::filesystem::path folder = lists();
    if (folder.empty()) {
      throw_user_error(
          "the installed lists of domains and endings are missing; name a folder with --url-lists, or leave out the "
          "rules about URLs with --no-url-rules");
    }
    options.url_rules.emplace(folder);
  }
  return make_clean_stage(std::move(options));
}

}  // namespace teratron
