// What a stage is: a rule that keeps, changes or drops documents of a stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "corpus/stream/document.h"
#include "corpus/stream/document_source.h"
#include "corpus/stream/spool.h"
#include "data/text/input_files.h"

namespace teratron {

// Why a document was dropped: the reason is one of a few words that are counted, the detail is about this document.
struct Drop {
  std::string reason;  // "short"
  std::string detail;  // "97 tokens of 128"
};

struct StageOutput {
  std::vector<Document> documents;  // none where it is dropped; several where it is cut into pieces
  std::optional<Drop> drop;         // set where `documents` is empty
};

// Documents pass a stage batch by batch, in the order of the stream. Members that are const run on any thread, and
// their results depend on the document alone (and on the survey), so a stream's output does not depend on the threads.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual std::string_view name() const = 0;  // "clean"

  // Of a first stage: the files that the user's names stand for, and, where it reads them in a way of its own, what
  // does so. `from`: where a batch of an earlier one over the same files ended.
  virtual std::vector<std::filesystem::path> find_files(std::span<const std::filesystem::path> named) const {
    return find_input_files(named);
  }
  virtual std::unique_ptr<DocumentSource> open(const std::vector<std::filesystem::path>& /*files*/,
                                               TextFormat /*format*/, std::int64_t /*batch_bytes*/,
                                               const InputPosition& /*from*/) const {
    return nullptr;
  }

  // Whether it has to see all documents before it decides about the first. The stream is then written to a spool. Each
  // document is measured, its measures are noted in order, and settle() ends the survey.
  virtual bool needs_survey() const { return false; }
  virtual std::vector<std::uint64_t> measure(const Document&) const { return {}; }
  virtual void note(std::int64_t /*number*/, const std::vector<std::uint64_t>& /*measures*/) {}
  virtual void settle(const Spool&) {}

  virtual StageOutput process(Document document) const = 0;
  // Decides, in the stream's order, about a document that process() kept: what depends on those before it.
  virtual std::optional<Drop> admit(const Document&) { return std::nullopt; }

  // For a run that goes on where another one ended: of what admit() remembers, what is new since the last call, asked
  // for after each batch; and all of that again, piece by piece in its order, before the first document.
  virtual std::string take_news() { return {}; }
  virtual void remember(std::string_view /*news*/) {}

  // What else is worth telling in the statistics. Asked at the end.
  struct Fact {
    std::string name;
    std::variant<std::int64_t, double, std::string> value;
  };
  virtual std::vector<Fact> facts() const { return {}; }

 protected:
  static StageOutput kept(Document document) {
    StageOutput output;
    output.documents.push_back(std::move(document));
    return output;
  }
  static StageOutput dropped(std::string reason, std::string detail) {
    return {.documents = {}, .drop = Drop{std::move(reason), std::move(detail)}};
  }
};

}  // namespace teratron
