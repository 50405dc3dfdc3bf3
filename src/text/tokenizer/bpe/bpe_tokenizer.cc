// Implements Tokenizer for byte-level BPE.
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_encoder.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/splitter.h"
#include "tokenizer/tokenizer_implementation.h"

namespace teratron {
namespace {

class BytePairTokenizer final : public Tokenizer::Implementation {
 public:
  explicit BytePairTokenizer(BpeModel model)
      : model_(std::move(model)), table_(model_), special_(model_.tokens, model_.special) {}

  TokenizerKind kind() const override { return TokenizerKind::kBytePair; }
  void encode(std::string_view text, std::vector<std::int32_t>& out) const override {
    std::unique_ptr<BpeEncoder> encoder = encoders_.take(table_);
    encoder->encode(text, out);
    encoders_.give_back(std::move(encoder));
  }
  void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::vector<std::int32_t> ids;
    encode(text, ids);
    std::uint32_t at = 0;
    for (const std::int32_t id : ids) {
      const auto end = static_cast<std::uint32_t>(at + bytes_of(id).size());
      out.push_back({id, at, end});
      at = end;
    }
  }
  std::size_t next_cut(std::string_view text, std::size_t from) const override { return next_safe_cut(text, from); }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += bytes_of(id);
    return bytes;
  }
  std::string_view bytes_of(std::int32_t id) const override { return model_.tokens[static_cast<std::size_t>(id)]; }
  bool adds_prefix_space() const override { return model_.add_prefix_space; }
  std::string_view end_of_text() const override { return model_.end_of_text; }
  std::int64_t vocab_size() const override { return std::ssize(model_.tokens); }
  const SpecialTokens& special() const override { return special_; }
  std::string hash() const override { return hash_of(model_); }
  void save(const std::filesystem::path& folder) const override { write_bpe_model(model_, folder); }
  const BpeModel* byte_pair() const override { return &model_; }

 private:
  BpeModel model_;
  MergeTable table_;
  SpecialTokens special_;
  mutable EncoderPool<BpeEncoder> encoders_;
};

}  // namespace

std::shared_ptr<const Tokenizer::Implementation> make_byte_pair_tokenizer(BpeModel model) {
  return std::make_shared<const BytePairTokenizer>(std::move(model));
}

}  // namespace teratron
