// Texts that share a sample without seeing one another, and the padding after them.
#pragma once

#include <cstdint>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"

namespace teratron {

// A batch with room for so many samples of texts, without answers of pairs.
SampleBatch make_batch_of_texts(std::int64_t samples, std::int64_t seq_length);

// Writes the inputs of a text and their targets from element `begin` of the batch on, which is token `first_key` of its
// sample: a text of n tokens has n - 1 inputs. Weights become 0.
void write_text(const IndexedDataset& dataset, TokenRange text, std::int64_t first_key, SampleBatch& batch,
                std::int64_t begin);

// Writes padding from token `filled` on of the sample that begins with element `begin`: a text of its own, without
// targets.
void write_padding(SampleBatch& batch, std::int64_t begin, std::int64_t filled, std::int64_t seq_length);

}  // namespace teratron
