// Turns text into tokens: the step between a cleaned corpus and training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "data/text/document_reader.h"
#include "data/text/sentence_splitter.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct TokenizeCounts {
  std::int64_t documents = 0;        // written
  std::int64_t empty_documents = 0;  // without text; not written
  std::int64_t tokens = 0;           // with the end-of-text tokens
  // If documents are split: sentences written, and documents with a single one.
  std::int64_t sentences = 0, single_sentences = 0;
  std::int64_t bytes = 0;  // of the documents' text
};

struct TokenizeProgress {
  TokenizeCounts counts;
  std::int64_t bytes_read = 0, bytes_total = 0;  // of the files
};

struct TokenizeOptions {
  TextFormat format = TextFormat::kAuto;
  std::string tokenizer_name;                  // path it was read from, for the corpus' sidecar
  std::string json_key = "text";               // of the text in JSON
  bool append_end_of_text = true;              // after each document, unless it is split
  SentenceSplit split = SentenceSplit::kNone;  // each sentence is a sequence, tokenised separately, as BERT's training
                                               // needs; those without tokens are left out
  std::int64_t batch_bytes = std::int64_t{16} << 20;
  std::function<void(const TokenizeProgress&)> progress;  // called after each batch
};

// Tokenises `files` (named as find_input_files takes them) into PREFIX.bin, PREFIX.idx and PREFIX.teratron.json
// (corpus_sidecar.h), in input order, with all threads. JSON lines and arrays have a document per object (with the text
// under json_key); any other file is one document. Memory is a few times batch_bytes, or the longest document's, plus
// 12 bytes a document and 4 bytes a sentence. The result does not depend on the threads or batch_bytes. UserError: a
// file that cannot be read or is not text (DocumentReader), a line that is no such object or whose text holds a NUL
// (file and line), no document with text, a tokenizer without "<|endoftext|>" if it is needed. EnvironmentError: the
// result cannot be written. An error leaves no files, and an older dataset at PREFIX stays.
TokenizeCounts tokenize_files(const Tokenizer& tokenizer, std::span<const std::filesystem::path> files,
                              const std::filesystem::path& prefix, const TokenizeOptions& options = {});

}  // namespace teratron
