// data decontaminate: removes evaluation sets from a training set, as Megatron-LM's tools/openwebtext/filter_ngrams.py
// does. Differences:
//   - A word is a run of letters and digits (words.h), without "_"; in scripts without spaces a character or a letter
//     with its marks, so that 13 of them are a clause of 4 to 8 words (--cut-ngram takes more).
//   - Every occurrence of an n-gram counts as one, so long common passages stay whole.
//   - The cut is measured from the end of the n-gram in the text; pieces begin without white space.
//   - A document of which half is in the evaluation sets (document_share) counts as one of theirs and is dropped: so
//     the articles of WikiText103's test set leave Wikipedia.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

// The limits are that script's. Evaluation texts of fewer words than `shortest` are ignored.
struct DecontaminateOptions {
  std::vector<std::filesystem::path> evaluation;  // as find_input_files takes them
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";
  std::int64_t longest = 13, shortest = 8;  // words (words.h) of an n-gram; a text of 8 to 12 words is one n-gram
  std::int64_t frequent = 10;  // n-grams that occur so often in the training set are common phrases, which are kept
  std::int64_t surroundings = 200;  // characters cut on each side, and on to the next end of a sentence (. ! ?)
  std::int64_t least_piece = 200;   // characters; a shorter piece between two cuts goes, too
  std::int64_t most_pieces = 10;    // a document that would be cut into more is dropped
  double document_share = 0.5;      // of a document's longest n-grams in the evaluation sets: the document is dropped
};

// Drops "evaluation document" (document_share), "nothing left" and "many pieces". A document that is cut into several
// pieces becomes as many documents, with its other fields and kPieceOf (document.h). Memory: about 50 bytes for each
// n-gram of the evaluation sets, however large the training set is. UserError: as DocumentReader; a bad line;
// evaluation sets without n-grams.
std::unique_ptr<Stage> make_decontaminate_stage(DecontaminateOptions options);

struct DecontaminateSettings {
  static constexpr StageText kText{.name = "decontaminate",
                                   .summary = "takes what is in evaluation sets out of a training set",
                                   .doing = "looking for evaluation sets"};
  DecontaminateOptions options;

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::vector<std::filesystem::path> files_read() const { return options.evaluation; }
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;
};

}  // namespace teratron
