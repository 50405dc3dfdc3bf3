// Samples of chats: whole conversations that share a sample without seeing one another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/packing.h"
#include "data/split/corpus_split.h"

namespace teratron {

// Samples of a corpus whose sequences are turns (SequenceUnit::kTurn). The target of a token is the next one of its
// conversation, with weight 1 if that is to be learned. Conversations are packed (SamplePacking). One that is longer
// than a sample is cut at its end; padding has no weight. Memory: 40 bytes a conversation, and 8 a sample. Safe to use
// from many threads.
class ChatSamples : public Samples {
 public:
  // UserError: no conversation of the part has a word to learn within seq_length.
  ChatSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part, std::int64_t seq_length,
              SampleOrder order, std::uint64_t seed = 0);

  std::int64_t seq_length() const override { return seq_length_; }
  std::int64_t samples_per_epoch() const override { return packing_.samples(); }
  // Says how much was cut off and left out, and the share of padding.
  std::string left_out() const override;
  std::string source(std::int64_t position) const override;
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  TotalWeights total_weights(SampleRange positions) const override;

  struct Counts {
    std::int64_t conversations = 0, cut = 0, empty = 0;  // empty: left out, since nothing in them is to be learned
    std::int64_t tokens_cut = 0, learned_cut = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Conversation {
    TokenRange tokens;
    std::int64_t document = 0, learned = 0;
    std::int64_t inputs() const { return tokens.size() - 1; }
  };

  // Counts, too.
  std::vector<Conversation> find_conversations(const CorpusPart& part);
  void add(const CorpusPart& part, std::int64_t number, std::vector<Conversation>& conversations);
  std::vector<std::int64_t> inputs() const;  // of each conversation
  // Calls visit with each range of tokens to learn among the targets of a conversation.
  template <class Visit>
  void visit_learned(std::int64_t document, TokenRange tokens, const Visit& visit) const;
  // Calls visit with each conversation of a sample.
  template <class Visit>
  void visit_sample(std::int64_t position, const Visit& visit) const;
  void read_conversation(const Conversation& conversation, std::int64_t first_key, SampleBatch& batch,
                         std::int64_t begin) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  std::int64_t seq_length_;
  Counts counts_;
  std::vector<Conversation> conversations_;
  SamplePacking packing_;
};

}  // namespace teratron
