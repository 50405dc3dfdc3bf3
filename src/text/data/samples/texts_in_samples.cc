#include "data/samples/texts_in_samples.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace teratron {

SampleBatch make_batch_of_texts(std::int64_t samples, std::int64_t seq_length) {
  SampleBatch batch;
  resize_fields(samples * seq_length, batch.ids, batch.targets, batch.weights, batch.first_keys, batch.position_ids);
  return batch;
}

void write_text(const IndexedDataset& dataset, TokenRange text, std::int64_t first_key, SampleBatch& batch,
                std::int64_t begin) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(text.size()));
  dataset.read(text.begin, tokens);
  const std::int64_t inputs = text.size() - 1;
  std::copy(tokens.begin(), tokens.end() - 1, batch.ids.begin() + begin);
  std::copy(tokens.begin() + 1, tokens.end(), batch.targets.begin() + begin);
  std::fill_n(batch.first_keys.begin() + begin, inputs, static_cast<std::int32_t>(first_key));
  std::iota(batch.position_ids.begin() + begin, batch.position_ids.begin() + begin + inputs, 0);
  std::fill_n(batch.weights.begin() + begin, inputs, 0.0F);
}

void write_padding(SampleBatch& batch, std::int64_t begin, std::int64_t filled, std::int64_t seq_length) {
  const std::int64_t first = begin + filled, padding = seq_length - filled;
  for (auto* const values : {&batch.ids, &batch.targets}) std::fill_n(values->begin() + first, padding, 0);
  std::fill_n(batch.weights.begin() + first, padding, 0.0F);
  std::fill_n(batch.first_keys.begin() + first, padding, static_cast<std::int32_t>(filled));
  std::iota(batch.position_ids.begin() + first, batch.position_ids.begin() + begin + seq_length, 0);
}

}  // namespace teratron
