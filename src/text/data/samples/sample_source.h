// Documents of a corpus that tokens come from, in words.
#pragma once

#include <span>
#include <string>

#include "data/indexed/indexed_dataset.h"

namespace teratron {

// "document 12 of 'corpus', tokens 0 to 63; document 3 of ...": counted from 0, the document in its file and the tokens
// in the document, the last one included. The first few of many documents are named.
std::string source_of(const IndexedDataset& dataset, std::span<const TokenRange> ranges);

}  // namespace teratron
