// Examples of a task as a BERT reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// An example is a group of sequences, each [CLS] A [SEP] B [SEP] without padding, and the labels of the group.
struct TaskExamples {
  std::int64_t sequences_each = 1;  // per example: RACE has 4, one per option
  // Labels per example. Spans have two: the indices in the sequence of the answer's first and last token; 0, which is
  // [CLS], if the sequence does not hold the answer.
  std::int64_t labels_each = 1;

  std::vector<std::int32_t> ids;  // of all sequences, one after another
  std::vector<std::int64_t>
      begins;  // [sequences + 1]: the offset in ids where each sequence begins, and the end of the last
  std::vector<std::int32_t> seconds;  // [sequences]: the index in the sequence where B begins
  std::vector<std::int32_t> labels;   // [examples, labels_each]; -1: unknown, as in a test set

  std::int64_t count() const { return sequences() / sequences_each; }  // of examples
  std::int64_t sequences() const { return std::ssize(seconds); }

  // Sequence k of example i is number i * sequences_each + k.
  std::span<const std::int32_t> sequence(std::int64_t number) const {
    const auto at = static_cast<std::size_t>(number);
    return std::span(ids).subspan(static_cast<std::size_t>(begins[at]),
                                  static_cast<std::size_t>(begins[at + 1] - begins[at]));
  }
  // Token types of a sequence are 0 before this index and 1 from it on.
  std::int64_t second(std::int64_t number) const { return seconds[static_cast<std::size_t>(number)]; }
  std::span<const std::int32_t> labels_of(std::int64_t example) const {
    return std::span(labels).subspan(static_cast<std::size_t>(example * labels_each),
                                     static_cast<std::size_t>(labels_each));
  }
  std::int64_t length(std::int64_t number) const { return std::ssize(sequence(number)); }
  // A hash of all members; not 0. Sets of the same examples in the same order are equal, whatever their files.
  std::int64_t checksum() const;
  std::int64_t longest() const;  // tokens of the longest sequence; 0 if there is none
};

}  // namespace teratron
