// The text of a document as it stands in its file: all of it, or what a line of JSON holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/text/document_reader.h"

namespace teratron {

// Of one thread.
class DocumentText {
 public:
  // `key`: what the text of a .jsonl line is under.
  explicit DocumentText(std::string key);
  DocumentText(const DocumentText&) = delete;
  DocumentText& operator=(const DocumentText&) = delete;
  ~DocumentText();

  // Valid until the next call, and as long as the document. UserError, with file and line: the line is no JSON object
  // with a string under the key, or the string holds a NUL.
  std::string_view of(const RawDocument& document);

 private:
  struct Parser;
  const std::string key_;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace teratron
