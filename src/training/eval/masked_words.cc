#include "eval/masked_words.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "eval/finite_outputs.h"
#include "eval/padded_batch.h"
#include "tokenizer/text_frame.h"

namespace teratron {
namespace {

// The likeliest of the tokens with these logits.
std::vector<TokenChance> likeliest(std::span<const float> logits, std::int64_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  const auto middle = order.begin() + std::min(count, std::ssize(order));
  std::ranges::partial_sort(order, middle, [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  const double largest = logit(order.front());
  double sum = 0;
  for (const float value : logits) sum += std::exp(static_cast<double>(value) - largest);
  std::vector<TokenChance> chances;
  for (auto token = order.begin(); token != middle; ++token) {
    chances.push_back({.token = *token, .probability = std::exp(logit(*token) - largest) / sum});
  }
  return chances;
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, std::int32_t token) {
  if (token >= tokenizer.vocab_size()) return "";
  if (tokenizer.kind() != TokenizerKind::kWordPiece) return tokenizer.decode(std::span(&token, 1));
  return std::string(tokenizer.word_piece().tokens[static_cast<std::size_t>(token)]);
}

MaskedText masked_text(const Tokenizer& tokenizer, std::string_view text, std::int64_t most_tokens,
                       std::string_view name) {
  const std::optional<TextFrame> frame = text_frame(tokenizer);
  if (!frame) {
    throw_user_error(
        "the tokenizer has no mask, neither BERT's [MASK] nor RoBERTa's <mask>; use the model's own files");
  }
  MaskedText masked{.ids = {frame->begin}};
  tokenizer.encode_to(text, masked.ids, SpecialText::kToken);
  masked.ids.push_back(frame->end);
  if (std::ssize(masked.ids) > most_tokens) {
    throw_user_error("{} has {} tokens, with those around it, and the model {} positions; shorten it", name,
                     masked.ids.size(), most_tokens);
  }
  for (std::size_t at = 0; at < masked.ids.size(); ++at) {
    if (masked.ids[at] == frame->mask) masked.masks.push_back(static_cast<std::int32_t>(at));
  }
  if (masked.masks.empty()) {
    throw_user_error("{} has no {}; write it where a word is to be predicted", name,
                     token_text(tokenizer, frame->mask));
  }
  return masked;
}

std::vector<std::vector<std::vector<TokenChance>>> fill_masks(Encoder& encoder, std::span<const MaskedText> texts,
                                                              std::int64_t count,
                                                              const std::function<void(double share)>& done) {
  std::vector<std::vector<std::int32_t>> ids;
  for (const MaskedText& text : texts) ids.push_back(text.ids);
  const auto batch = static_cast<std::size_t>(encoder.options().batch),
             vocab = static_cast<std::size_t>(encoder.config().vocab_size);
  std::vector<std::vector<std::vector<TokenChance>>> all(texts.size());
  std::vector<float> logits;
  for (std::size_t begin = 0; begin < texts.size(); begin += batch) {
    std::vector<std::size_t> numbers(std::min(batch, texts.size() - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    const PaddedBatch padded(ids, numbers);
    const MicroBatch micro_batch = padded.micro_batch();
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (const std::int32_t mask : texts[numbers[i]].masks) {
        rows.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(i) * micro_batch.tokens) + mask);
      }
    }
    logits.resize(rows.size() * vocab);
    encoder.predict_tokens(micro_batch, rows, logits);
    std::size_t row = 0;
    for (const std::size_t number : numbers) {
      for ([[maybe_unused]] const std::int32_t mask : texts[number].masks) {
        const std::span<const float> own = std::span(logits).subspan(row++ * vocab, vocab);
        if (first_not_finite(own)) {
          throw_output_not_finite(fmt::format("a prediction for text {}", number + 1),
                                  encoder.backend().compute_dtype());
        }
        all[number].push_back(likeliest(own, count));
      }
    }
    if (done) done(static_cast<double>(begin + numbers.size()) / static_cast<double>(texts.size()));
  }
  return all;
}

}  // namespace teratron
