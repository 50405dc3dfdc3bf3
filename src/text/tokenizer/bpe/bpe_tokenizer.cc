// Implements Tokenizer for BPE.
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_encoder.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/bpe_normalizer.h"
#include "tokenizer/bpe/roberta.h"
#include "tokenizer/bpe/splitter.h"
#include "tokenizer/tokenizer_implementation.h"

namespace teratron {
namespace {

using Change = BpeNormalizer::Change;

// Maps spans of the normalized text to the bytes of the text that they come from. A changed part counts as a whole.
void return_to_text(std::span<const Change> changes, std::span<TokenSpan> spans) {
  const auto to_text = [&](std::uint32_t at, bool is_end) {
    // Finds the last change that begins before `at`, or at it if a token begins there.
    std::size_t before = 0;
    while (before < changes.size() && (is_end ? changes[before].begin < at : changes[before].begin <= at)) ++before;
    if (before == 0) return at;
    const Change& change = changes[before - 1];
    const bool is_inside = is_end ? at <= change.end : at < change.end;
    const std::size_t place =
        is_inside ? (is_end ? change.text_end : change.text_begin) : change.text_end + at - change.end;
    return static_cast<std::uint32_t>(place);
  };
  for (TokenSpan& span : spans) {
    while (changes.size() > 1 && changes[1].end < span.begin) changes = changes.subspan(1);
    span = {span.id, to_text(span.begin, false), to_text(span.end, true)};
  }
}

class BytePairTokenizer final : public Tokenizer::Implementation {
 public:
  explicit BytePairTokenizer(BpeModel model)
      : model_(std::move(model)),
        tables_(model_),
        normalizer_(model_),
        special_(model_.tokens, model_.special),
        found_(model_.tokens, model_.found) {
    if (const std::optional<RobertaTokens> tokens = roberta_tokens(model_)) mask_ = tokens->mask;
  }

  TokenizerKind kind() const override { return TokenizerKind::kBytePair; }
  void encode(std::string_view text, std::vector<std::int32_t>& out) const override {
    std::string normalized;
    encode_normalized(normalizer_.normalize(text, normalized, nullptr), out);
  }
  void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::string normalized;
    std::vector<Change> changes;
    std::vector<std::int32_t> ids;
    encode_normalized(normalizer_.normalize(text, normalized, &changes), ids);
    const std::size_t before = out.size();
    std::uint32_t at = 0;
    for (const std::int32_t id : ids) {
      const auto end = static_cast<std::uint32_t>(at + bytes_of(id).size());
      out.push_back({id, at, end});
      at = end;
    }
    return_to_text(changes, std::span(out).subspan(before));
  }
  std::size_t next_cut(std::string_view text, std::size_t from) const override {
    const BpePipeline& pipeline = model_.pipeline;
    return pipeline.is_sentence_piece() ? tables_.joints.next_safe_cut(text, from)
                                        : next_safe_cut(text, from, pipeline.splitter);
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += bytes_of(id);
    if (model_.pipeline.strips_space && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }
  std::string_view bytes_of(std::int32_t id) const override { return model_.tokens[static_cast<std::size_t>(id)]; }
  bool adds_space_to(std::string_view text, bool begins_text) const override {
    const bool begins_with_space =
        text.starts_with(' ') || (model_.pipeline.is_sentence_piece() && text.starts_with(kSpaceSign));
    switch (model_.pipeline.prefix) {
      case BpePrefix::kNever: return false;
      case BpePrefix::kUnlessSpace: return !begins_with_space;
      case BpePrefix::kUnlessSpaceAtStart: return begins_text && !begins_with_space;
      case BpePrefix::kAlways: return true;
    }
    return false;
  }
  std::string_view end_of_text() const override { return model_.end_of_text; }
  std::string_view beginning_of_text() const override { return model_.pipeline.beginning; }
  std::optional<std::int32_t> takes_space_before() const override { return mask_; }
  std::int64_t vocab_size() const override { return std::ssize(model_.tokens); }
  const SpecialTokens& special() const override { return special_; }
  std::string hash() const override { return hash_of(model_); }
  void save(const std::filesystem::path& folder) const override { write_bpe_model(model_, folder); }
  const BpeModel* byte_pair() const override { return &model_; }

 private:
  void encode_normalized(std::string_view text, std::vector<std::int32_t>& out) const {
    std::unique_ptr<BpeEncoder> encoder = encoders_.take(tables_);
    while (const auto match = found_.find(text)) {
      encoder->encode(text.substr(0, match->position), out);
      out.push_back(match->id);
      text.remove_prefix(match->position + match->length);
    }
    encoder->encode(text, out);
    encoders_.give_back(std::move(encoder));
  }

  BpeModel model_;
  BpeTables tables_;
  BpeNormalizer normalizer_;
  SpecialTokens special_, found_;
  std::optional<std::int32_t> mask_;  // RoBERTa's
  mutable EncoderPool<BpeEncoder> encoders_;
};

}  // namespace

std::shared_ptr<const Tokenizer::Implementation> make_byte_pair_tokenizer(BpeModel model) {
  return std::make_shared<const BytePairTokenizer>(std::move(model));
}

}  // namespace teratron
