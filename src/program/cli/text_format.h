// Flags of commands that read documents: --format and --json-key.
#pragma once

#include <string>

#include "data/text/content.h"
#include "options/fields.h"

namespace teratron {

inline void add_text_format_fields(FieldList& list, TextFormat& format, std::string& json_key) {
  list.add_choice("format", format,
                  {{"auto", TextFormat::kAuto}, {"jsonl", TextFormat::kJsonLines}, {"text", TextFormat::kText}},
                  "format of files; auto: by their content, whatever their names; text: plain text, of any bytes");
  list.add("json-key", &json_key, "KEY", "the text of a JSON object, or of a row of Parquet, is under this key");
}

}  // namespace teratron
