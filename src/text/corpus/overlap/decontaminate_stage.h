// data decontaminate: takes what is in evaluation sets out of a training set.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "corpus/stream/stage.h"

namespace teratron {

// The limits are those of Megatron-LM's tools/openwebtext/filter_ngrams.py.
struct DecontaminateOptions {
  std::vector<std::filesystem::path> evaluation;  // as find_input_files takes them
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";
  std::int64_t longest = 13, shortest = 8;  // n-grams of words (words.h): of 13; a text of 8 to 12 words is one n-gram
  std::int64_t frequent = 10;       // an n-gram that the training set has as often is a common phrase, and is not cut
  std::int64_t surroundings = 200;  // characters cut on each side, and on to the next end of a sentence (. ! ?)
  std::int64_t least_piece = 200;   // characters: what is left between two cuts and is not longer goes, too
  std::int64_t most_pieces = 10;    // a document that would be in more is dropped
  double document_share = 0.5;      // of a document's n-grams of 13 words in the evaluation sets: it is one of them
};

// Drops "evaluation document" (document_share), "nothing left" and "many pieces"; a document that is cut in several
// pieces becomes as many documents with the same other fields. Memory: some 50 bytes for each n-gram of the evaluation
// sets, however large the training set is. UserError: as DocumentReader; a bad line; evaluation sets without n-grams.
std::unique_ptr<Stage> make_decontaminate_stage(DecontaminateOptions options);

}  // namespace teratron
