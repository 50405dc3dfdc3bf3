#include "data/samples/preference_samples.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "data/samples/sample_source.h"
#include "data/samples/texts_in_samples.h"

namespace teratron {

PreferenceSamples::PreferenceSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part,
                                     std::int64_t seq_length, SampleOrder order, std::uint64_t seed)
    : dataset_(std::move(dataset)),
      seq_length_(seq_length),
      pairs_(find_pairs(part)),
      packing_(inputs(), seq_length, order, seed) {}

std::vector<PreferenceSamples::Pair> PreferenceSamples::find_pairs(const CorpusPart& part) {
  std::vector<Pair> pairs;
  for (std::int64_t i = 0; i < part.documents(); ++i) {
    Pair pair = whole_pair(part, i);
    cut(pair);
    const bool is_empty = pair.chosen.targets().size() <= 0 || pair.rejected.targets().size() <= 0;
    empty_ += is_empty ? 1 : 0;
    if (!is_empty) pairs.push_back(pair);
  }
  if (!pairs.empty()) return pairs;
  throw_user_error(
      "of the {} in the {} part of {} none has words of both answers within {} tokens; give it more of them, a "
      "longer --seq-length, or a larger share in --split",
      counted(part.documents(), "pair"), part.name, dataset_->name(), seq_length_);
}

PreferenceSamples::Pair PreferenceSamples::whole_pair(const CorpusPart& part, std::int64_t number) const {
  const std::int64_t document = part.number(number), first = dataset_->first_sequence(document),
                     end = dataset_->first_sequence(document + 1);
  if (end - first != 4) {
    throw_user_error(
        "document {} of {} has {}, and a pair of answers has 4; make the corpus again by "
        "'teratron data preferences'",
        document, dataset_->name(), counted(end - first, "sequence"));
  }
  const auto answer = [&](std::int64_t prompt) {
    const TokenRange words = dataset_->sequence(prompt + 1);
    return Answer{.text = {dataset_->sequence(prompt).begin, words.end}, .first_token = words.begin};
  };
  const Pair pair{.chosen = answer(first), .rejected = answer(first + 2)};
  if (part.document(*dataset_, number).size() < pair.rejected.text.end - pair.chosen.text.begin) {
    throw_user_error("{} has fewer pairs of answers than --split has parts; give it more pairs, or --split 1",
                     dataset_->name());
  }
  return pair;
}

void PreferenceSamples::cut(Pair& pair) {
  if (pair.inputs() <= seq_length_) return;
  ++cut_;
  const std::int64_t half = seq_length_ / 2;
  const std::int64_t chosen = std::max(seq_length_ - pair.rejected.inputs(), half);
  const auto shorten = [&](Answer& answer, std::int64_t inputs) {
    const std::int64_t end = std::min(answer.text.end, answer.text.begin + inputs + 1);
    tokens_cut_ += answer.text.end - end;
    answer_tokens_cut_ += answer.text.end - std::max(end, answer.first_token);
    answer.text.end = end;
  };
  shorten(pair.chosen, std::min(chosen, pair.chosen.inputs()));
  shorten(pair.rejected, seq_length_ - pair.chosen.inputs());
}

std::vector<std::int64_t> PreferenceSamples::inputs() const {
  std::vector<std::int64_t> all;
  for (const Pair& pair : pairs_) all.push_back(pair.inputs());
  return all;
}

std::string PreferenceSamples::left_out() const {
  std::string text = fmt::format(
      "{} in {} of {}, {:.1f} % of them padding", counted(std::ssize(pairs_), "pair of answers", "pairs of answers"),
      counted(samples_per_epoch(), "sample"), counted(seq_length_, "token"), 100 * packing_.padding());
  if (cut_ > 0) {
    text += fmt::format("\n{} longer, without {} at the ends of the texts, {} of them of answers", cut_,
                        counted(tokens_cut_, "token"), readable_integer(answer_tokens_cut_));
  }
  if (empty_ > 0) text += fmt::format("\n{} without a word of one of the answers left out", empty_);
  return text;
}

std::string PreferenceSamples::source(std::int64_t position) const {
  std::vector<TokenRange> ranges;
  for (const std::int64_t item : packing_.items(position)) {
    const Pair& pair = pairs_[static_cast<std::size_t>(item)];
    ranges.push_back({pair.chosen.text.begin, pair.rejected.text.end});
  }
  return source_of(*dataset_, ranges);
}

SampleBatch PreferenceSamples::make_batch(std::int64_t samples) const {
  SampleBatch batch = make_batch_of_texts(samples, seq_length_);
  batch.answers.resize(batch.ids.size());
  return batch;
}

void PreferenceSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const std::int64_t begin = (at + i) * seq_length_;
    std::fill_n(batch.answers.begin() + begin, seq_length_, 0);
    std::int64_t filled = 0;
    std::int32_t number = 0;
    for (const std::int64_t item : packing_.items(positions.first + i)) {
      const Pair& pair = pairs_[static_cast<std::size_t>(item)];
      ++number;
      read_answer(pair.chosen, number, batch, begin, filled);
      read_answer(pair.rejected, -number, batch, begin, filled);
    }
    write_padding(batch, begin, filled, seq_length_);
  }
}

void PreferenceSamples::read_answer(const Answer& answer, std::int32_t number, SampleBatch& batch, std::int64_t sample,
                                    std::int64_t& filled) const {
  write_text(*dataset_, answer.text, filled, batch, sample + filled);
  const TokenRange targets = answer.targets();
  const std::int64_t first = sample + filled + (targets.begin - 1 - answer.text.begin);
  std::fill_n(batch.weights.begin() + first, targets.size(), 1.0F);
  std::fill_n(batch.answers.begin() + first, targets.size(), number);
  filled += answer.inputs();
}

Samples::TotalWeights PreferenceSamples::total_weights(SampleRange positions) const {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < positions.count; ++i) pairs += std::ssize(packing_.items(positions.first + i));
  return {.targets = static_cast<double>(pairs)};
}

}  // namespace teratron
