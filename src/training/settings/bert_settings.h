// How BERT's samples are made of a corpus of sentences.
#pragma once

#include "base/faults.h"
#include "data/samples/bert_samples.h"
#include "options/fields.h"

namespace teratron {

struct BertSettings {
  BertOptions options;
  std::int64_t max_ngram = 0;  // words; 0: 3, or 10 by the geometric law

  BertOptions filled() const;  // filled in

  Faults faults() const;
};

void add_bert_fields(FieldList& list, BertSettings& settings);

}  // namespace teratron
