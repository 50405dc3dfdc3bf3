// Extracts the text of a stored document: all of it, or a member of a JSON object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/document_reader.h"

namespace teratron {

// The key of the text in a JSON object.
struct TextKeys {
  std::vector<std::string> names;  // alternatives; the first that an object has counts
  std::string advice = "name the key of the text with --json-key";
  bool may_hold_nul = false;  // the value is a page, say, from which a text is made
};

// Used by one thread.
class DocumentText {
 public:
  explicit DocumentText(std::string key) : DocumentText(TextKeys{.names = {std::move(key)}}) {}
  // `format_flag`: as DocumentReader::advise_flag().
  explicit DocumentText(TextKeys keys, std::string_view format_flag = kFormatFlag);
  DocumentText(const DocumentText&) = delete;
  DocumentText& operator=(const DocumentText&) = delete;
  ~DocumentText();

  // Valid until the next call, and as long as the document. UserError, with file and line: the document is no JSON
  // object with a string under the key, or the string holds a NUL that it may not; with the file: a plain text is not
  // UTF-8. Other members may hold numbers of any size, and nest to any depth.
  std::string_view of(const RawDocument& document);

 private:
  struct Parser;
  const TextKeys keys_;
  const std::string format_flag_;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace teratron
