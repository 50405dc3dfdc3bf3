// How BERT's samples are made of a corpus of sentences.
#pragma once

#include "base/faults.h"
#include "data/samples/bert_samples.h"
#include "options/fields.h"

namespace teratron {

struct BertSettings {
  BertOptions bert;

  Faults faults() const;
};

void add_bert_fields(FieldList& list, BertSettings& settings);

}  // namespace teratron
