// Implements Tokenizer for WordPiece.
#include <array>

#include "base/replace_all.h"
#include "tokenizer/tokenizer_implementation.h"
#include "tokenizer/word_piece/word_piece_encoder.h"
#include "tokenizer/word_piece/word_piece_files.h"
#include "tokenizer/word_piece/word_piece_table.h"

namespace teratron {
namespace {

// The change that Hugging Face's decoder makes to each token.
void clean_up_spaces(std::string& token) {
  constexpr std::array<std::array<std::string_view, 2>, 11> kReplaced = {{{" .", "."},
                                                                          {" ?", "?"},
                                                                          {" !", "!"},
                                                                          {" ,", ","},
                                                                          {" ' ", "'"},
                                                                          {" n't", "n't"},
                                                                          {" 'm", "'m"},
                                                                          {" do not", " don't"},
                                                                          {" 's", "'s"},
                                                                          {" 've", "'ve"},
                                                                          {" 're", "'re"}}};
  for (const auto& [from, to] : kReplaced) replace_all(token, from, to);
}

class WordPieceTokenizer final : public Tokenizer::Implementation {
 public:
  explicit WordPieceTokenizer(WordPieceModel model)
      : model_(std::move(model)), table_(model_), special_(model_.tokens, model_.special) {
    for (std::size_t id = 0; id < model_.tokens.size(); ++id) {
      const bool continues = model_.continues_word(static_cast<std::int32_t>(id));
      later_.push_back(continues ? model_.tokens[id].substr(model_.prefix.size()) : " " + model_.tokens[id]);
      if (model_.clean_up) clean_up_spaces(later_.back());
    }
  }

  TokenizerKind kind() const override { return TokenizerKind::kWordPiece; }
  void encode(std::string_view text, std::vector<std::int32_t>& out) const override {
    std::unique_ptr<WordPieceEncoder> encoder = encoders_.take(table_);
    encoder->encode(text, out);
    encoders_.give_back(std::move(encoder));
  }
  void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::unique_ptr<WordPieceEncoder> encoder = encoders_.take(table_);
    encoder->encode_with_offsets(text, out);
    encoders_.give_back(std::move(encoder));
  }
  std::size_t next_cut(std::string_view text, std::size_t from) const override {
    return next_cut_between_words(text, from);
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    if (!ids.empty()) {  // the first token is written as in the vocabulary, even one that continues a word
      text = model_.tokens[static_cast<std::size_t>(ids[0])];
      if (model_.clean_up) clean_up_spaces(text);
      for (const std::int32_t id : ids.subspan(1)) text += bytes_of(id);
    }
    return text;
  }
  std::string_view bytes_of(std::int32_t id) const override { return later_[static_cast<std::size_t>(id)]; }
  std::int64_t vocab_size() const override { return std::ssize(model_.tokens); }
  const SpecialTokens& special() const override { return special_; }
  std::string hash() const override { return hash_of(model_); }
  void save(const std::filesystem::path& folder) const override { write_word_piece_model(model_, folder); }
  const WordPieceModel* word_piece() const override { return &model_; }

 private:
  WordPieceModel model_;
  WordPieceTable table_;
  SpecialTokens special_;
  std::vector<std::string> later_;  // each token as written after another one
  mutable EncoderPool<WordPieceEncoder> encoders_;
};

}  // namespace

std::shared_ptr<const Tokenizer::Implementation> make_word_piece_tokenizer(WordPieceModel model) {
  return std::make_shared<const WordPieceTokenizer>(std::move(model));
}

}  // namespace teratron
