// Spans of words in their labels, such as names of people and places, and how many of them a model finds. The rules are
// conlleval's (Tjong Kim Sang and De Meulder, CoNLL-2003), as seqeval counts them unless it is strict.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace teratron::tag {

// A label's part in a span.
enum class Part : char { kOutside = 'O', kBegin = 'B', kInside = 'I', kEnd = 'E', kSingle = 'S' };

struct Span {
  std::int64_t begin = 0, end = 0;  // its words
  std::int32_t type = 0;
  auto operator<=>(const Span&) const = default;
};

// Labels as parts of spans: O, or B, I, E or S with a hyphen and a type. That covers IOB1, IOB2 and IOBES.
class SpanLabels {
 public:
  explicit SpanLabels(std::span<const std::string> names);

  // Whether all names have that form. Parts of speech, for example, have not.
  bool are_spans() const { return are_spans_; }
  const std::vector<std::string>& types() const { return types_; }  // sorted; "_" of a label without one

  // The spans of a sentence's labels, in their order. One begins at a B or an S, and at an I or an E after O, after an
  // E or an S, or after another type; it ends where the next begins, at an O, and after an E or an S. InternalError:
  // not are_spans().
  std::vector<Span> spans_in(std::span<const std::int32_t> labels) const;

 private:
  struct Label {
    Part part = Part::kOutside;
    std::int32_t type = -1;
  };
  std::vector<Label> labels_;  // by number
  std::vector<std::string> types_;
  bool are_spans_ = true;
};

// Numbers of spans: in the labels, in the predictions, and with the same words and type in both.
struct SpanCounts {
  std::int64_t labelled = 0, said = 0, right = 0;

  // 0 where the denominator is 0.
  double precision() const { return share(right, said); }
  double recall() const { return share(right, labelled); }
  double f1() const { return share(2 * right, labelled + said); }

 private:
  static double share(std::int64_t part, std::int64_t of) {
    return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
  }
};

struct SpanScores {
  SpanCounts all;
  std::vector<SpanCounts> by_type;  // as SpanLabels::types

  explicit SpanScores(const SpanLabels& labels) : by_type(labels.types().size()) {}
  // Counts those of a sentence.
  void add(std::span<const Span> labelled, std::span<const Span> said);
};

}  // namespace teratron::tag
