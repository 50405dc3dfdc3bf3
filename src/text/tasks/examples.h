// Examples of a task: token sequences and labels, as a BERT reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace teratron {

// Stands for no label. As a number (number_of_label) it is a NaN, so no number is taken for it.
inline constexpr std::int32_t kUnknownLabel = -1;

// Converts a number to learn to the word that stands in a label's place (model/bert_task_head.h), and back.
constexpr std::int32_t label_of_number(float number) { return std::bit_cast<std::int32_t>(number); }
constexpr float number_of_label(std::int32_t label) { return std::bit_cast<float>(label); }

// An example is a group of sequences, each [CLS] A [SEP] B [SEP] without padding, and the labels of the group. A
// sequence may be [CLS] A [SEP] alone.
struct TaskExamples {
  std::int64_t sequences_each = 1;  // per example: RACE has 4, one per option
  // Labels per example. Spans have two: the indices in the sequence of the answer's first and last token; 0, which is
  // [CLS], if the sequence does not hold the answer. kEachToken: one for every token of its one sequence.
  static constexpr std::int64_t kEachToken = 0;
  std::int64_t labels_each = 1;
  bool labels_tokens() const { return labels_each == kEachToken; }

  // Whether the examples of a micro-batch are one another's negatives (embed without similarities). Their losses depend
  // on one another, so they stay in the order of the epoch; other tasks' examples are batched by length.
  bool are_negatives = false;

  std::vector<std::int32_t> ids;  // of all sequences, one after another
  std::vector<std::int64_t>
      begins;  // [sequences + 1]: the offset in ids where each sequence begins, and the end of the last
  std::vector<std::int32_t> seconds;  // [sequences]: the index in the sequence where B begins; without B its length
  std::vector<std::int32_t> labels;   // [examples, labels_each], or as ids; kUnknownLabel: none, as in a test set

  std::int64_t count() const { return sequences() / sequences_each; }  // of examples
  std::int64_t sequences() const { return std::ssize(seconds); }

  // Sequence k of example i is number i * sequences_each + k.
  std::span<const std::int32_t> sequence(std::int64_t number) const { return part_of(ids, number); }
  // Token types of a sequence are 0 before this index and 1 from it on.
  std::int64_t second(std::int64_t number) const { return seconds[static_cast<std::size_t>(number)]; }
  std::span<const std::int32_t> labels_of(std::int64_t example) const {
    if (labels_tokens()) return part_of(labels, example);
    return std::span(labels).subspan(static_cast<std::size_t>(example * labels_each),
                                     static_cast<std::size_t>(labels_each));
  }
  std::int64_t length(std::int64_t number) const { return std::ssize(sequence(number)); }
  // A hash of all members but are_negatives; not 0. Sets of the same examples in the same order are equal, whatever
  // their files.
  std::int64_t checksum() const;
  std::int64_t longest() const;                         // tokens of the longest sequence; 0 if there is none
  std::int64_t longest_of(std::int64_t example) const;  // tokens of an example's longest sequence
  // Number of examples whose sequences are those of an example of another set, whatever their labels.
  std::int64_t count_in(const TaskExamples& other) const;

 private:
  std::string_view bytes_of(std::int64_t example) const;  // of its ids
  // Part of a sequence in `list`, which has a value for each token.
  std::span<const std::int32_t> part_of(const std::vector<std::int32_t>& list, std::int64_t number) const {
    const auto at = static_cast<std::size_t>(number);
    return std::span(list).subspan(static_cast<std::size_t>(begins[at]),
                                   static_cast<std::size_t>(begins[at + 1] - begins[at]));
  }
};

}  // namespace teratron
