// The names of a stage in the command line and its help.
#pragma once

#include <string_view>

namespace teratron {

struct StageText {
  std::string_view name;     // "dedup": `data dedup`, `--then dedup`
  std::string_view summary;  // "keeps the first of documents that are nearly the same"
  std::string_view doing;    // "looking for duplicates"
  std::string_view
      reads;  // "pages", for a stage with a reader of its own, which can only be the first; otherwise empty
};

}  // namespace teratron
