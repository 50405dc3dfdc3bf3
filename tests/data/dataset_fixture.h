// Shared by the tests of the data room: a folder of their own, small corpora, and a tokenizer of bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "data/indexed/indexed_dataset.h"
#include "data/indexed/indexed_dataset_writer.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {

using Document = std::vector<std::int32_t>;

inline void write_dataset(const std::filesystem::path& prefix, const std::vector<Document>& documents,
                          std::int64_t vocab_size) {
  IndexedDatasetWriter writer(prefix, vocab_size);
  for (const Document& document : documents) writer.add_document(document);
  writer.commit();
}

// A corpus whose token ids are their own positions, 0, 1, 2, ..., so that every read shows where it came from.
inline std::shared_ptr<const IndexedDataset> numbered_dataset(const std::filesystem::path& prefix,
                                                              const std::vector<std::int64_t>& lengths) {
  IndexedDatasetWriter writer(prefix, 1 << 30);
  std::int32_t next = 0;
  for (const std::int64_t length : lengths) {
    Document document(static_cast<std::size_t>(length));
    for (auto& token : document) token = next++;
    writer.add_document(document);
  }
  writer.commit();
  return std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix));
}

inline std::vector<std::int64_t> random_lengths(std::mt19937_64& random, std::int64_t documents, std::int64_t longest) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(documents));
  for (auto& length : lengths) length = std::uniform_int_distribution<std::int64_t>(0, longest)(random);
  return lengths;
}

// Token b is the byte b; 256 is <|endoftext|>.
inline Tokenizer byte_tokenizer(bool with_end_of_text = true) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  if (with_end_of_text) {
    model.tokens.emplace_back("<|endoftext|>");
    model.special = {256};
  }
  return Tokenizer(std::move(model));
}

}  // namespace teratron::testing
