#include "corpus/dedup/dedup_settings.h"

#include "base/files/file.h"

namespace teratron {
namespace {

constexpr double kLeastJaccard = 0.3;  // below, sketches of this size do not tell

}  // namespace

void DedupSettings::add_fields(FieldList& list) {
  list.add("jaccard", &options.jaccard, "X", "documents are duplicates whose sets of n-grams are more alike");
  list.add("shingle", &options.ngram, "N", "words of an n-gram").between(1, 100);
}

Faults DedupSettings::faults(bool /*runs*/) const {
  Faults faults;
  faults.add_if(!(options.jaccard >= kLeastJaccard && options.jaccard < 1), "{} is a share, from {} to below 1",
                Flag{"jaccard"}, kLeastJaccard);
  return faults;
}

std::unique_ptr<Stage> DedupSettings::make(const StreamOptions& stream) const {
  DedupOptions made = options;
  made.folder = folder_for_temporaries(stream.out);
  return make_dedup_stage(std::move(made));
}

}  // namespace teratron
