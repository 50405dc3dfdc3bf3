#include "train/sample_reader.h"

#include <algorithm>
#include <vector>

#include "train/run_control.h"

namespace teratron {
namespace {

template <class T>
void fill_part(std::vector<T>& values, const SampleBatch& batch, std::int64_t tokens, SampleRange places, T value) {
  const auto samples = static_cast<std::int64_t>(batch.ids.size()) / tokens;
  const std::int64_t each = std::ssize(values) / samples;  // none of what the samples do not have
  std::fill_n(values.begin() + places.first * each, places.count * each, value);
}

// Samples of the lengths and documents that the other ranks of the model read from their index.
void stand_in(const Samples& samples, SampleRange positions, SampleBatch& batch, std::int64_t at) {
  const SampleRange places{at, positions.count};
  const std::int64_t tokens = samples.seq_length();
  for (auto* const values : {&batch.ids, &batch.token_types, &batch.first_keys, &batch.position_ids, &batch.targets,
                             &batch.answers, &batch.labels}) {
    fill_part(*values, batch, tokens, places, 0);
  }
  for (auto* const weights : {&batch.weights, &batch.label_weights}) fill_part(*weights, batch, tokens, places, 1.0F);
  if (!batch.key_lengths.empty()) std::ranges::copy(samples.lengths(positions), batch.key_lengths.begin() + at);
  if (!batch.first_keys.empty())
    std::ranges::copy(samples.first_keys(positions), batch.first_keys.begin() + at * tokens);
}

}  // namespace

// Ids that no vocabulary has are the user's fault where a run starts; under a run, something has written them.
template <class Read>
bool SampleReader::succeeds(const Read& read) {
  try {
    read();
    return true;
  } catch (const UserError& error) {
    if (fault_.empty()) fault_ = error.what();
  } catch (const EnvironmentError& error) {
    if (fault_.empty()) fault_ = error.what();
  }
  return false;
}

void SampleReader::read(const Samples& samples, SampleRange positions, SampleBatch& batch, std::int64_t at) {
  if (!succeeds([&] { samples.read(positions, batch, at); })) stand_in(samples, positions, batch, at);
}

Samples::TotalWeights SampleReader::total_weights(const Samples& samples, SampleRange positions) {
  Samples::TotalWeights total;
  if (succeeds([&] { total = samples.total_weights(positions); })) return total;
  const auto count = static_cast<double>(positions.count);
  return {.targets = count * static_cast<double>(samples.seq_length()), .labels = count};
}

void SampleReader::require_readable(const Mesh& mesh) const {
  const std::string fault = first_said(mesh, fault_);
  if (!fault.empty()) throw CorpusFailure(fault);
}

}  // namespace teratron
