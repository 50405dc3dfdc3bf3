// Common to `data split` and `data sample`: both read tokenised corpora (by PREFIX) or JSON lines (by file), and write
// some of their documents to corpora of the same kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
#include "data/corpus_copy.h"
#include "data/split/document_choice.h"
#include "options/fields.h"

namespace teratron {

// Adds SOURCE, the corpora or files.
void add_parts_sources_field(FieldList& list, std::vector<std::string>& sources);
// Whether `sources` name JSON lines. All of them do or none; corpus_parts_faults() refuses others.
bool name_json_lines(const std::vector<std::string>& sources);
// Faults of sources, and of a result `out` of them.
Faults corpus_parts_faults(const std::vector<std::string>& sources, const std::filesystem::path& out);

class PartsSource {
 public:
  explicit PartsSource(const std::vector<std::string>& sources);  // which have no faults

  std::int64_t documents() const { return documents_; }
  std::int64_t tokens() const { return corpus_ ? corpus_->dataset->tokens() : 0; }  // 0 for lines
  SizeOfDocument size_in_tokens() const;
  std::vector<std::filesystem::path> files_written_to(const std::filesystem::path& out) const;
  // As copy_documents and copy_lines, with progress on standard error.
  std::vector<CopiedCorpus> copy(const std::vector<std::filesystem::path>& outs, const std::vector<std::uint8_t>& parts,
                                 const std::string& doing) const;
  // Adds what is known of a copy: of lines their number alone.
  void add_counts(nlohmann::ordered_json& json, const CopiedCorpus& copied) const;

 private:
  std::vector<std::filesystem::path> files_;
  std::optional<CopySource> corpus_;
  std::int64_t documents_ = 0;
};

// "1,234 documents, 56,789 tokens: out", or "1,234 of 5,678 documents, ..."; without tokens if there are none.
std::string line_of(const CopiedCorpus& copied, std::int64_t of_documents = 0);

}  // namespace teratron
