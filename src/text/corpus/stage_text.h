// The words by which users know a stage.
#pragma once

#include <string_view>

namespace teratron {

struct StageText {
  std::string_view name;     // "dedup": `data dedup`, `--then dedup`
  std::string_view summary;  // "keeps the first of documents that are nearly the same"
  std::string_view doing;    // "looking for duplicates"
  std::string_view reads;    // "pages": files in a way of its own, so that it can only be the first stage; else empty
};

}  // namespace teratron
