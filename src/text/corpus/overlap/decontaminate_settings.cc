#include "corpus/overlap/decontaminate_settings.h"

#include <algorithm>

namespace teratron {

void DecontaminateSettings::add_fields(FieldList& list) {
  list.add("evaluation", &options.evaluation, "FILE", "texts of evaluation sets, named as FILE is");
  list.add("cut-ngram", &options.longest, "N", "words in a row that both have are cut out").between(1, 100);
  list.add("frequent", &options.frequent, "N", "but those that FILE has as often stay").between(1);
  list.add("document-share", &options.document_share, "X",
           "drop a document with this share of its n-grams in the sets");
}

Faults DecontaminateSettings::faults(bool runs) const {
  Faults faults;
  faults.add_if(runs && options.evaluation.empty(),
                "what decontaminate takes out is not said; name the files of evaluation sets with {}",
                Flag{"evaluation"});
  faults.add_if(!(options.document_share > 0 && options.document_share <= 1), "{} is a share, above 0 and at most 1",
                Flag{"document-share"});
  return faults;
}

std::unique_ptr<Stage> DecontaminateSettings::make(const StreamOptions& stream) const {
  DecontaminateOptions made = options;
  made.format = stream.format;
  made.text_key = stream.text_key;
  made.shortest = std::min(made.shortest, made.longest);
  return make_decontaminate_stage(std::move(made));
}

}  // namespace teratron
