// The documents of a pass: from files, or from the spool of the pass before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "corpus/stream/document.h"
#include "corpus/stream/spool.h"

namespace teratron {

struct BadDocument {
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;
  std::string fault;  // with file and line
};

class DocumentSource {
 public:
  struct Batch {
    std::vector<Document> documents;
    std::vector<BadDocument> bad;
    InputPosition end;  // for files: where the next batch begins
  };
  virtual ~DocumentSource() = default;
  virtual bool next(Batch& batch) = 0;                               // false: the end
  virtual double share() const = 0;                                  // read so far, 0 to 1
  virtual std::span<const std::filesystem::path> files() const = 0;  // that documents point to
};

// Values of a key: texts, or bytes in any encoding where a Parquet column of that name has those.
enum class KeyHolds { kTexts, kAnyBytes };

// Reads a batch ahead, in a thread of its own, and parses with all threads.
class FileSource final : public DocumentSource {
 public:
  FileSource(std::span<const std::filesystem::path> files, TextFormat format, std::string text_key,
             std::int64_t batch_bytes, const InputPosition& from = {}, KeyHolds holds = KeyHolds::kTexts);
  ~FileSource() override;
  bool next(Batch& batch) override;
  double share() const override;
  std::span<const std::filesystem::path> files() const override { return reader_.files(); }

 private:
  struct RawBatch {
    DocumentBatch batch;
    InputPosition end;
    bool is_end = false;
  };
  void read_ahead();

  DocumentReader reader_;
  TextKeys key_;
  std::int64_t bytes_read_ = 0;
  std::future<RawBatch> ahead_;  // declared last: it ends before the reader
};

class SpoolSource final : public DocumentSource {
 public:
  SpoolSource(const Spool& spool, std::int64_t batch_bytes) : spool_(spool), batch_bytes_(batch_bytes) {}
  bool next(Batch& batch) override;
  double share() const override;
  std::span<const std::filesystem::path> files() const override { return spool_.files(); }

 private:
  const Spool& spool_;
  std::int64_t batch_bytes_, next_ = 0;
};

}  // namespace teratron
