// The flags of commands that read documents: what files hold, and where a line of JSON has its text.
#pragma once

#include <string>

#include "data/text/document_reader.h"
#include "options/fields.h"

namespace teratron {

inline void add_text_format_fields(FieldList& list, TextFormat& format, std::string& json_key) {
  list.add_choice("format", format,
                  {{"auto", TextFormat::kByName}, {"jsonl", TextFormat::kJsonLines}, {"text", TextFormat::kText}},
                  "of files; auto: by their names; standard input is jsonl if its first line is a JSON object");
  list.add("json-key", &json_key, "KEY", "the text of a .jsonl line is under this key");
}

}  // namespace teratron
