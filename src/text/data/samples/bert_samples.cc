// Differences from Megatron-LM:
//   - Documents with a sentence of more than 512 tokens are kept; the excess is cut off.
//   - A piece of a cut word does not join a word beyond [SEP], and no n-gram spans it.
//   - If no word fits into the share to be masked, the shortest is masked, so that there is a target.
//   - Special tokens, such as [UNK] in the text, are never masked, and replacements are never special.
//   - The map of segments is made by all threads in one pass, and is no file (sentence_segments.h).
#include "data/samples/bert_samples.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/samples/sample_source.h"
#include "data/samples/sentence_segments.h"

namespace teratron {
namespace {

constexpr std::int64_t kSamplesPerTask = 8;

std::int64_t checked_length(std::int64_t seq_length) {
  if (seq_length >= BertSamples::kShortestSequence) return seq_length;
  throw_user_error("--seq-length {} is too short for a pair of texts: [CLS] A [SEP] B [SEP] needs {} tokens at least",
                   seq_length, BertSamples::kShortestSequence);
}

std::vector<TokenKind> kinds_of(const BertTokens& tokens) {
  const auto size = static_cast<std::size_t>(tokens.vocab_size);
  check_equal(tokens.continues_word.size(), size, "tokens of BERT's vocabulary");
  check_equal(tokens.is_special.size(), size, "tokens of BERT's vocabulary");
  for (const std::int32_t id : {tokens.classify, tokens.separate, tokens.mask, tokens.pad}) {
    check(id >= 0 && id < tokens.vocab_size, "BertTokens: a special token outside the vocabulary");
    check(tokens.is_special[static_cast<std::size_t>(id)], "BertTokens: a special token that is not marked so");
  }
  std::vector<TokenKind> kinds(size, TokenKind::kBeginsWord);
  for (std::size_t id = 0; id < size; ++id) {
    if (tokens.continues_word[id]) kinds[id] = TokenKind::kContinuesWord;
    if (tokens.is_special[id]) kinds[id] = TokenKind::kSpecial;
  }
  return kinds;
}

// Number of tokens of `count` to cut at the beginning; each is cut at either end with p = 1/2.
std::int64_t draw_cut_at_begin(std::int64_t count, RandomSequence& random) {
  std::int64_t at_begin = 0;
  for (; count >= 32; count -= 32) at_begin += std::popcount(random.next_u32());
  return at_begin + std::popcount(random.next_u32() & ((1U << count) - 1));
}

// Cuts `excess` tokens off a pair: off the longer side, and once they are equal off both in turn (b first).
void cut_pair(std::int64_t excess, TokenRange& a, TokenRange& b, RandomSequence& random) {
  if (excess <= 0) return;
  std::int64_t of_a = std::min(excess, std::max(std::int64_t{0}, a.size() - b.size()));
  std::int64_t of_b = std::min(excess, std::max(std::int64_t{0}, b.size() - a.size()));
  const std::int64_t of_both = excess - of_a - of_b;
  of_a += of_both / 2;
  of_b += of_both - of_both / 2;
  for (auto& [side, cut] : {std::pair<TokenRange&, std::int64_t>(a, of_a), {b, of_b}}) {
    const std::int64_t at_begin = draw_cut_at_begin(cut, random);
    side.begin += at_begin;
    side.end -= cut - at_begin;
  }
}

// Advice if no document of a part has two sentences.
std::string_view advice_for_sentences(const IndexedDataset& dataset) {
  if (dataset.sequences() > dataset.documents()) return "give it more text, or a larger share in --split";
  const std::optional<CorpusSidecar> sidecar = read_sidecar(dataset.shards().front().prefix());
  if (!sidecar || !is_sentence(sidecar->unit)) {
    return "tokenise the text with 'teratron data tokenize --split-sentences'";
  }
  return sidecar->unit == SequenceUnit::kLine
             ? "each of its documents was one line: write the sentences of a document on lines of their own, or split "
               "at their ends with --split-sentences punctuation"
             : "it was split at the marks that end sentences, and has one a document: give it documents of several "
               "sentences, or text with a sentence a line and --split-sentences lines";
}

}  // namespace

BertTokens bert_tokens(const Tokenizer& tokenizer) {
  if (tokenizer.kind() != TokenizerKind::kWordPiece) {
    throw_user_error(
        "BERT's samples have [CLS], [SEP] and [MASK], and the tokenizer is BPE, which has none of them; use a "
        "WordPiece vocabulary (vocab.txt), and make the corpus with it");
  }
  const WordPieceModel& model = tokenizer.word_piece();
  const auto size = static_cast<std::int32_t>(model.tokens.size());
  BertTokens tokens{.classify = model.classify,
                    .separate = model.separate,
                    .mask = model.mask,
                    .pad = model.pad,
                    .vocab_size = size,
                    .continues_word = std::vector<bool>(model.tokens.size()),
                    .is_special = std::vector<bool>(model.tokens.size())};
  for (std::int32_t id = 0; id < size; ++id)
    tokens.continues_word[static_cast<std::size_t>(id)] = model.continues_word(id);
  for (const std::int32_t id : model.special) tokens.is_special[static_cast<std::size_t>(id)] = true;
  return tokens;
}

BertSamples::BertSamples(std::shared_ptr<const IndexedDataset> dataset, CorpusPart part, std::int64_t seq_length,
                         SampleOrder order, std::uint64_t seed, const BertTokens& tokens, const BertOptions& options)
    : dataset_(std::move(dataset)),
      part_(std::move(part)),
      seq_length_(checked_length(seq_length)),
      order_(order, bert_stream(BertDraw::kOrder, seed, 0)),
      seed_(seed),
      options_(options),
      classify_(tokens.classify),
      separate_(tokens.separate),
      mask_(tokens.mask),
      pad_(tokens.pad),
      kinds_(kinds_of(tokens)),
      segments_(*dataset_, part_, seq_length - 3, options.short_seq_prob, seed) {
  check(options.masked_lm_prob > 0 && options.masked_lm_prob < 1 && options.ngrams.longest >= 1, "BertOptions");
  for (std::size_t id = 0; id < kinds_.size(); ++id) {
    if (kinds_[id] != TokenKind::kSpecial) ordinary_.push_back(static_cast<std::int32_t>(id));
  }
  check(!ordinary_.empty(), "BertTokens: a vocabulary of special tokens alone");
  if (segments_.count() > 0) return;
  throw_user_error(
      "none of the {} in the {} part of {} has two sentences, which BERT's pairs are made of (the corpus has {} and "
      "{}); "
      "{}",
      counted(part_.documents(), "document"), part_.name, dataset_->name(), counted(dataset_->documents(), "document"),
      counted(dataset_->sequences(), "sentence"), advice_for_sentences(*dataset_));
}

BertSamples::Counts BertSamples::counts() const {
  return {.documents = part_.documents(),
          .documents_left_out = part_.documents() - segments_.documents(),
          .sentences = segments_.sentences()};
}

std::string BertSamples::left_out() const {
  const Counts all = counts();
  if (all.documents_left_out == 0) return {};
  return fmt::format("{} of {} left out: fewer than two sentences", readable_integer(all.documents_left_out),
                     counted(all.documents, "document"));
}

std::string BertSamples::source(std::int64_t position) const {
  const SentenceSegment segment = segment_at(position);
  const TokenRange tokens{dataset_->sequence(segment.first).begin, dataset_->sequence(segment.end - 1).end};
  return source_of(*dataset_, {&tokens, 1});
}

std::vector<std::int32_t> BertSamples::lengths(SampleRange positions) const {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const SentenceSegment segment = segment_at(positions.first + i);
    const std::int64_t tokens = dataset_->sequence(segment.end - 1).end - dataset_->sequence(segment.first).begin;
    all.push_back(static_cast<std::int32_t>(std::min(tokens, segment.target) + 3));
  }
  return all;
}

SampleBatch BertSamples::make_batch(std::int64_t samples) const {
  SampleBatch batch;
  resize_fields(samples * seq_length_, batch.ids, batch.token_types, batch.targets, batch.weights);
  resize_fields(samples, batch.key_lengths, batch.labels, batch.label_weights);
  return batch;
}

void BertSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  parallel_for(positions.count, kSamplesPerTask, [&](std::int64_t begin, std::int64_t end) {
    Drawn drawn;
    for (std::int64_t i = begin; i < end; ++i) {
      draw(positions.first + i, drawn);
      write(positions.first + i, drawn, batch, at + i);
    }
  });
}

Samples::TotalWeights BertSamples::total_weights(SampleRange positions) const {
  std::atomic<std::int64_t> masked{0};
  parallel_for(positions.count, kSamplesPerTask, [&](std::int64_t begin, std::int64_t end) {
    Drawn drawn;
    for (std::int64_t i = begin; i < end; ++i) {
      draw(positions.first + i, drawn);
      masked += drawn.masked_tokens;
    }
  });
  return {.targets = static_cast<double>(masked), .labels = static_cast<double>(positions.count)};
}

SentenceSegment BertSamples::segment_at(std::int64_t position) const {
  return segments_[order_.item(position, segments_.count())];
}

void BertSamples::draw_pair(std::int64_t position, Drawn& drawn) const {
  const SentenceSegment segment = segment_at(position);
  RandomSequence random(bert_stream(BertDraw::kPairs, seed_, position));
  std::int64_t sentences = 0;
  for (std::int64_t at = segment.first; at < segment.end; at = segments_.next_sentence(at + 1, segment.end))
    ++sentences;
  auto of_a = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(sentences - 1)));
  std::int64_t cut = segment.first;  // the first sentence of the later part
  for (; of_a > 0; --of_a) cut = segments_.next_sentence(cut + 1, segment.end);
  const std::int64_t middle = dataset_->sequence(cut).begin;
  TokenRange a{dataset_->sequence(segment.first).begin, middle};
  TokenRange b{middle, dataset_->sequence(segment.end - 1).end};
  drawn.is_swapped = random.next_u32() >> 31 != 0;
  if (drawn.is_swapped) std::swap(a, b);
  cut_pair(a.size() + b.size() - segment.target, a, b, random);

  drawn.ids.resize(static_cast<std::size_t>(a.size() + b.size() + 3));
  drawn.second = a.size() + 2;
  const auto size_of_a = static_cast<std::size_t>(a.size()), begin_of_b = static_cast<std::size_t>(drawn.second);
  drawn.ids.front() = classify_;
  dataset_->read(a.begin, std::span(drawn.ids).subspan(1, size_of_a));
  drawn.ids[begin_of_b - 1] = separate_;
  dataset_->read(b.begin, std::span(drawn.ids).subspan(begin_of_b, static_cast<std::size_t>(b.size())));
  drawn.ids.back() = separate_;
}

void BertSamples::draw(std::int64_t position, Drawn& drawn) const {
  draw_pair(position, drawn);
  drawn.kinds.resize(drawn.ids.size());
  for (std::size_t i = 0; i < drawn.ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(drawn.ids[i]);
    if (id >= kinds_.size()) {
      throw_user_error(
          "{} holds token id {}, but the vocabulary has {} tokens; use the tokenizer that made this dataset, or "
          "tokenise the text again",
          dataset_->name(), id, kinds_.size());
    }
    drawn.kinds[i] = kinds_[id];
  }
  find_words(drawn.kinds, drawn.words);
  const std::int64_t budget = masking_budget(std::ssize(drawn.ids), options_.masked_lm_prob);
  drawn.masked_tokens = draw_ngrams(drawn.words, budget, options_.ngrams,
                                    bert_stream(BertDraw::kMasks, seed_, position), drawn.masked, drawn.scratch);
}

void BertSamples::write(std::int64_t position, const Drawn& drawn, SampleBatch& batch, std::int64_t at) const {
  const std::ptrdiff_t begin = at * seq_length_, length = std::ssize(drawn.ids), padding = seq_length_ - length;
  const auto ids = batch.ids.begin() + begin;
  std::fill_n(std::ranges::copy(drawn.ids, ids).out, padding, pad_);
  std::copy_n(ids, seq_length_, batch.targets.begin() + begin);
  const auto types = batch.token_types.begin() + begin;
  std::fill_n(types, seq_length_, 0);
  std::fill(types + drawn.second, types + length, 1);
  const auto weights = batch.weights.begin() + begin;
  std::fill_n(weights, seq_length_, 0.0F);

  RandomSequence random(bert_stream(BertDraw::kReplacements, seed_, position));
  for (const WordRun& run : drawn.masked) {
    std::fill(weights + run.begin, weights + run.end, 1.0F);
    for (std::int32_t i = run.begin; i < run.end; ++i) {
      const double choice = random.uniform();
      if (choice < 0.8) {
        ids[i] = mask_;
      } else if (choice < 0.9) {
        ids[i] = ordinary_[random.below(ordinary_.size())];
      }
    }
  }
  const auto sample = static_cast<std::size_t>(at);
  batch.key_lengths[sample] = static_cast<std::int32_t>(length);
  batch.labels[sample] = drawn.is_swapped ? 1 : 0;
  batch.label_weights[sample] = 1;
}

}  // namespace teratron
