// A stage: a rule that keeps, changes or drops documents of a stream.
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

struct StageText {
  std::string_view name;     // "dedup": `data dedup`, `--then dedup`
  std::string_view summary;  // "keeps the first of documents that are nearly the same"
  std::string_view doing;    // "looking for duplicates"
  std::string_view reads;    // "pages": a reader of its own, so that it can only be the first; empty: none
};

// Why a document was dropped. Reasons are few, and counted; the detail is about this document.
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

  // For a first stage: the files that the user's names stand for, and a reader of its own for them (null: FileSource).
  // `from`: the end of a batch of an earlier reader of the same files.
  virtual std::vector<std::filesystem::path> find_files(std::span<const std::filesystem::path> named) const {
    return find_input_files(named);
  }
  virtual std::unique_ptr<DocumentSource> open(const std::vector<std::filesystem::path>& /*files*/,
                                               TextFormat /*format*/, std::int64_t /*batch_bytes*/,
                                               const InputPosition& /*from*/) const {
    return nullptr;
  }

  // A survey: the stage sees all documents before it decides about the first. The stream is written to a spool. Each
  // document is measured, its measures are noted in order, and settle() ends the survey.
  virtual bool needs_survey() const { return false; }
  virtual std::vector<std::uint64_t> measure(const Document&) const { return {}; }
  virtual void note(std::int64_t /*number*/, const std::vector<std::uint64_t>& /*measures*/) {}
  virtual void settle(const Spool&) {}

  virtual StageOutput process(Document document) const = 0;
  // Decides about a document that process() kept, in the stream's order: rules that depend on earlier documents.
  virtual std::optional<Drop> admit(const Document&) { return std::nullopt; }

  // State that admit() added since the last call, serialised; asked for after each batch. A resumed run gets all of
  // them back, in order, before its first document.
  virtual std::string take_state_delta() { return {}; }
  virtual void restore_state(std::string_view /*delta*/) {}

  // Further statistics. Asked for at the end.
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
