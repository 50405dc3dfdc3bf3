// Parsing of slices of tokens, as users write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

struct TokenSlices {
  bool automatic = false;             // "auto" and "joint": those that a profile says are best
  bool joint = false;                 // "joint": micro-batches are chosen with them
  bool by_documents = false;          // cuts follow each micro-batch's documents; `count` says how many
  int count = 1;                      // of a sequence; the most where micro-batches have slices of their own
  std::vector<std::int64_t> lengths;  // in tokens, first slice first; empty where the user gave their number only
  std::vector<MicroBatchCut> cuts;    // where micro-batches have slices of their own: every one's; else empty

  std::vector<int> slices_each() const;  // of `cuts`
};

enum class SliceForms {
  kAll,
  kFixed,  // without documents:N and joint
};

// "4" or "uniform:4" (so many, as even as can be), "704,688,656" (their lengths), "auto", "joint",
// "documents:4" (so many, cut by the documents of each micro-batch), or micro-batches of different sizes, each cut in
// its own way: "2x512,512+1x1024" is one of two sequences in two slices, then one of one in one piece. The first has
// the most sequences. UserError that begins with `flag`; it offers the forms that the caller takes.
TokenSlices parse_token_slices(std::string_view flag, std::string_view text, SliceForms forms = SliceForms::kAll);

// Text that parse_token_slices() reads.
std::string text_of(std::span<const MicroBatchCut> cuts);

// `count` slices of `tokens` tokens that differ by one at most, longer ones first: early slices have less context.
// UserError where there are fewer tokens than slices.
std::vector<std::int64_t> even_slices(std::int64_t tokens, int count);

}  // namespace teratron::pipeline
