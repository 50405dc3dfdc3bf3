// Examples of a task as a BERT reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// An example is a group of sequences, each [CLS] A [SEP] B [SEP] without padding, and the labels of the group.
struct TaskExamples {
  std::int64_t sequences_each = 1;  // of an example: RACE has 4, one an option
  // Of an example. Spans have two: the tokens, as places in the sequence, that the answer begins and ends with; 0, that
  // is [CLS], where the sequence does not hold it.
  std::int64_t labels_each = 1;

  std::vector<std::int32_t> ids;      // of all sequences, one after another
  std::vector<std::int64_t> begins;   // [sequences + 1]: where each sequence begins in ids, and where the last one ends
  std::vector<std::int32_t> seconds;  // [sequences]: the place in the sequence that B begins at
  std::vector<std::int32_t> labels;   // [examples, labels_each]; -1: unknown, as a test set has it

  std::int64_t count() const { return sequences() / sequences_each; }  // of examples
  std::int64_t sequences() const { return std::ssize(seconds); }

  // Sequence k of example i is number i * sequences_each + k.
  std::span<const std::int32_t> sequence(std::int64_t number) const {
    const auto at = static_cast<std::size_t>(number);
    return std::span(ids).subspan(static_cast<std::size_t>(begins[at]),
                                  static_cast<std::size_t>(begins[at + 1] - begins[at]));
  }
  // Token types of a sequence are 0 before this place and 1 from it on.
  std::int64_t second(std::int64_t number) const { return seconds[static_cast<std::size_t>(number)]; }
  std::span<const std::int32_t> labels_of(std::int64_t example) const {
    return std::span(labels).subspan(static_cast<std::size_t>(example * labels_each),
                                     static_cast<std::size_t>(labels_each));
  }
  std::int64_t length(std::int64_t number) const { return std::ssize(sequence(number)); }
  // Of all that is above; not 0. Sets of the same examples in the same order have the same, wherever their files are.
  std::int64_t checksum() const;
  std::int64_t longest() const;  // tokens of the longest sequence; 0 of none
};

}  // namespace teratron
