#include "eval/text_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "eval/finite_outputs.h"
#include "eval/padded_batch.h"
#include "tokenizer/text_frame.h"

namespace teratron {
namespace {

constexpr std::int64_t kTextsAtATime = 64;  // tokenized by a thread at a time

TextFrame needed_frame(const Tokenizer& tokenizer) {
  const std::optional<TextFrame> frame = text_frame(tokenizer);
  if (frame) return *frame;
  throw_user_error(
      "the tokenizer has no [CLS], which BERT's texts are framed by, nor RoBERTa's <s>; use the model's own");
}

void make_unit_length(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / norm);
}

}  // namespace

TokenizedTexts tokenize_texts(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                              std::int64_t most_tokens, std::string_view prompt) {
  const TextFrame frame = needed_frame(tokenizer);
  if (most_tokens < 2) throw_user_error("a text needs 2 positions at least, and the model has {}", most_tokens);
  TokenizedTexts all;
  all.ids.resize(texts.size());
  parallel_for(static_cast<std::int64_t>(texts.size()), kTextsAtATime, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::vector<std::int32_t>& ids = all.ids[static_cast<std::size_t>(i)];
      ids.push_back(frame.begin);
      const std::string text = std::string(prompt).append(texts[static_cast<std::size_t>(i)]);
      tokenizer.encode_beginning_to(text, static_cast<std::size_t>(most_tokens), ids);
      ids.push_back(frame.end);
    }
  });
  for (std::vector<std::int32_t>& ids : all.ids) {
    if (static_cast<std::int64_t>(ids.size()) > most_tokens) {
      ids.resize(static_cast<std::size_t>(most_tokens));
      ids.back() = frame.end;
      ++all.cut;
    }
    const auto tokens = static_cast<std::int64_t>(ids.size());
    all.longest = std::max(all.longest, tokens);
    all.tokens += tokens;
  }
  return all;
}

void make_text_vectors(Encoder& encoder, const TokenizedTexts& texts, const TextVectorSettings& settings,
                       const std::function<void(std::size_t number, std::span<const float> vector)>& use,
                       const std::function<void(std::size_t texts)>& done) {
  std::vector<std::size_t> order(texts.ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t number) { return texts.ids[number].size(); });
  const auto batch = static_cast<std::size_t>(encoder.options().batch),
             hidden = static_cast<std::size_t>(encoder.config().hidden_size);
  std::vector<float> vectors;
  for (std::size_t begin = 0; begin < order.size(); begin += batch) {
    const std::span<const std::size_t> numbers = std::span(order).subspan(begin, std::min(batch, order.size() - begin));
    const PaddedBatch padded(texts.ids, numbers);
    vectors.resize(numbers.size() * hidden);
    encoder.embed(padded.micro_batch(), settings.pooling, vectors);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::span<float> vector = std::span(vectors).subspan(i * hidden, hidden);
      if (first_not_finite(vector)) {
        throw_output_not_finite(fmt::format("the vector of text {}", numbers[i] + 1),
                                encoder.backend().compute_dtype());
      }
      if (settings.normalize) make_unit_length(vector);
      use(numbers[i], vector);
    }
    if (done) done(begin + numbers.size());
  }
}

static_assert(std::endian::native == std::endian::little, "AtomicFile::write_values writes this machine's byte order");

void write_npy(const std::filesystem::path& path, std::int64_t columns, std::span<const float> values) {
  // Magic, version, length, and a Python dictionary, padded with spaces and a line end to a multiple of 64.
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  std::string description =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  description.resize(round_up(kBefore + description.size() + 1, kAlignment) - kBefore - 1, ' ');
  description += '\n';
  const std::array lengths = {static_cast<char>(description.size() & 0xff), static_cast<char>(description.size() >> 8)};
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  file.write_values(std::span<const char>(lengths));
  file.write(description);
  file.write_values(values);
  file.commit();
}

}  // namespace teratron
