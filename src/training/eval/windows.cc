#include "eval/windows.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "eval/finite_outputs.h"

namespace teratron {
namespace {

std::span<const ScoringWindow> share_of(std::span<const ScoringWindow> windows, const Communicator& group) {
  const auto rank = static_cast<std::size_t>(group.rank()), size = static_cast<std::size_t>(group.size());
  const std::size_t begin = windows.size() * rank / size, end = windows.size() * (rank + 1) / size;
  return windows.subspan(begin, end - begin);
}

// Fills in first keys and positions for the documents of windows of `length` ids, as far as the options ask for them.
void find_documents(std::span<const std::int32_t> ids, std::int64_t length, const DocumentOptions& documents,
                    std::vector<std::int32_t>& first_keys, std::vector<std::int32_t>& position_ids) {
  first_keys.resize(documents.reset_attention_mask ? ids.size() : 0);
  position_ids.resize(documents.reset_position_ids ? ids.size() : 0);
  const auto tokens = static_cast<std::size_t>(length);
  for (std::size_t begin = 0; begin < ids.size(); begin += tokens) {
    const auto window = ids.subspan(begin, tokens);
    if (!first_keys.empty()) {
      find_document_starts(window, documents.end_token, std::span(first_keys).subspan(begin, tokens));
    }
    if (!position_ids.empty()) {
      find_document_positions(window, documents.end_token, std::span(position_ids).subspan(begin, tokens));
    }
  }
}

}  // namespace

std::vector<ScoringWindow> scoring_windows(std::int64_t targets, std::int64_t length, std::int64_t stride) {
  check(length > 0 && stride > 0 && stride <= length, "0 < stride <= length");
  std::vector<ScoringWindow> windows;
  std::int64_t scored = 0;
  for (std::int64_t begin = 0; scored < targets; begin += stride) {
    const std::int64_t end = std::min(begin + length, targets);
    windows.push_back({begin, end - begin, scored - begin});
    scored = end;
  }
  return windows;
}

double score_windows(LanguageModel& model, std::span<const std::int32_t> tokens, std::span<const ScoringWindow> windows,
                     const ScoringObserver& observer, const DocumentOptions& documents) {
  windows = share_of(windows, *model.mesh().data);
  const auto batch = static_cast<std::size_t>(model.options().batch);
  ScoringState state;
  for (const ScoringWindow& window : windows) state.targets += window.length - window.first_scored;
  std::vector<std::int32_t> ids, targets, first_keys, position_ids;
  std::vector<float> losses;
  while (!windows.empty()) {
    const std::int64_t length = windows.front().length, first_scored = windows.front().first_scored;
    ids.clear();
    targets.clear();
    std::size_t count = 0;
    for (; count < std::min(batch, windows.size()); ++count) {
      const ScoringWindow& window = windows[count];
      if (window.length != length || window.first_scored != first_scored) break;
      const auto inputs = tokens.subspan(static_cast<std::size_t>(window.begin), static_cast<std::size_t>(length) + 1);
      ids.insert(ids.end(), inputs.begin(), inputs.end() - 1);
      targets.insert(targets.end(), inputs.begin() + 1, inputs.end());
    }
    find_documents(ids, length, documents, first_keys, position_ids);
    losses.resize(count * static_cast<std::size_t>(length - first_scored));
    model.losses({.ids = ids,
                  .first_keys = first_keys,
                  .position_ids = position_ids,
                  .targets = targets,
                  .batch = static_cast<std::int64_t>(count),
                  .tokens = length},
                 first_scored, losses);
    if (const auto found = first_not_finite(losses)) {
      const auto each = static_cast<std::size_t>(length - first_scored);
      const std::int64_t target =
          windows[*found / each].begin + first_scored + static_cast<std::int64_t>(*found % each) + 1;
      throw_output_not_finite(fmt::format("the loss of the text's token {} of {}", target + 1, tokens.size()),
                              model.backend().compute_dtype());
    }
    state.sum = std::accumulate(losses.begin(), losses.end(), state.sum);
    state.scored += static_cast<std::int64_t>(losses.size());
    windows = windows.subspan(count);
    observer(state);
  }
  model.mesh().data->all_reduce_host({&state.sum, 1});
  return state.sum;
}

}  // namespace teratron
