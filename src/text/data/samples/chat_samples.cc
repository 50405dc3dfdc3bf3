#include "data/samples/chat_samples.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "data/samples/sample_source.h"
#include "data/samples/texts_in_samples.h"

namespace teratron {

ChatSamples::ChatSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part, std::int64_t seq_length,
                         SampleOrder order, std::uint64_t seed)
    : dataset_(std::move(dataset)),
      seq_length_(seq_length),
      conversations_(find_conversations(part)),
      packing_(inputs(), seq_length, order, seed) {}

std::vector<ChatSamples::Conversation> ChatSamples::find_conversations(const CorpusPart& part) {
  std::vector<Conversation> conversations;
  for (std::int64_t i = 0; i < part.documents(); ++i) add(part, i, conversations);
  if (!conversations.empty()) return conversations;
  throw_user_error(
      "of the {} in the {} part of {} none has a word to learn among its first {} tokens; give it more "
      "of them, a longer --seq-length, or a larger share in --split",
      counted(part.documents(), "conversation"), part.name, dataset_->name(), seq_length_ + 1);
}

std::vector<std::int64_t> ChatSamples::inputs() const {
  std::vector<std::int64_t> all;
  for (const Conversation& conversation : conversations_) all.push_back(conversation.inputs());
  return all;
}

template <class Visit>
void ChatSamples::visit_sample(std::int64_t position, const Visit& visit) const {
  for (const std::int64_t item : packing_.items(position)) visit(conversations_[static_cast<std::size_t>(item)]);
}

template <class Visit>
void ChatSamples::visit_learned(std::int64_t document, TokenRange tokens, const Visit& visit) const {
  const std::int64_t first = dataset_->first_sequence(document), end = dataset_->first_sequence(document + 1);
  for (std::int64_t turn = first + 1; turn < end; turn += 2) {
    const TokenRange range = dataset_->sequence(turn);
    const TokenRange targets{std::max(range.begin, tokens.begin + 1), std::min(range.end, tokens.end)};
    if (targets.begin < targets.end) visit(targets);
  }
}

void ChatSamples::add(const CorpusPart& part, std::int64_t number, std::vector<Conversation>& conversations) {
  const auto learned_in = [&](std::int64_t document, TokenRange tokens) {
    std::int64_t learned = 0;
    visit_learned(document, tokens, [&](TokenRange range) { learned += range.size(); });
    return learned;
  };
  ++counts_.conversations;
  const TokenRange whole = part.document(*dataset_, number);
  Conversation one{.tokens = {whole.begin, std::min(whole.end, whole.begin + seq_length_ + 1)},
                   .document = part.number(number)};
  one.learned = learned_in(one.document, one.tokens);
  if (one.tokens.end < whole.end) {
    ++counts_.cut;
    counts_.tokens_cut += whole.end - one.tokens.end;
    counts_.learned_cut += learned_in(one.document, whole) - one.learned;
  }
  if (one.learned == 0) {
    ++counts_.empty;
    return;
  }
  conversations.push_back(one);
}

std::string ChatSamples::left_out() const {
  std::string text =
      fmt::format("{} in {} of {}, {:.1f} % of them padding", counted(std::ssize(conversations_), "conversation"),
                  counted(samples_per_epoch(), "sample"), counted(seq_length_, "token"), 100 * packing_.padding());
  if (counts_.cut > 0) {
    text += fmt::format("\n{} longer, without {} at the end, {} of them to be learned", counts_.cut,
                        counted(counts_.tokens_cut, "token"), readable_integer(counts_.learned_cut));
  }
  if (counts_.empty > 0) text += fmt::format("\n{} without a word to learn left out", counts_.empty);
  return text;
}

std::string ChatSamples::source(std::int64_t position) const {
  std::vector<TokenRange> ranges;
  visit_sample(position, [&](const Conversation& conversation) { ranges.push_back(conversation.tokens); });
  return source_of(*dataset_, ranges);
}

SampleBatch ChatSamples::make_batch(std::int64_t samples) const { return make_batch_of_texts(samples, seq_length_); }

void ChatSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const std::int64_t begin = (at + i) * seq_length_;
    std::int64_t filled = 0;
    visit_sample(positions.first + i, [&](const Conversation& conversation) {
      read_conversation(conversation, filled, batch, begin + filled);
      filled += conversation.inputs();
    });
    write_padding(batch, begin, filled, seq_length_);
  }
}

void ChatSamples::read_conversation(const Conversation& conversation, std::int64_t first_key, SampleBatch& batch,
                                    std::int64_t begin) const {
  write_text(*dataset_, conversation.tokens, first_key, batch, begin);
  visit_learned(conversation.document, conversation.tokens, [&](TokenRange targets) {
    std::fill_n(batch.weights.begin() + begin + (targets.begin - 1 - conversation.tokens.begin), targets.size(), 1.0F);
  });
}

Samples::TotalWeights ChatSamples::total_weights(SampleRange positions) const {
  std::int64_t learned = 0;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    visit_sample(positions.first + i, [&](const Conversation& conversation) { learned += conversation.learned; });
  }
  return {.targets = static_cast<double>(learned)};
}

}  // namespace teratron
