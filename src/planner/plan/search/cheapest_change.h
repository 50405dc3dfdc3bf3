// What to change where a model fits nowhere: what costs least first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/search/layout_search.h"

namespace teratron::plan {

struct Change {
  std::string text;        // "leave out --tp", "take 16 devices", ..
  Layout layout;           // that fits then
  std::int64_t bytes = 0;  // of its fullest rank, planned
};

// `request` fits nowhere. At most one change of what the user has fixed, then the fewest devices, then, if neither
// helps, a shorter sequence. Each fits by itself.
std::vector<Change> cheapest_changes(const PlanRequest& request);

// UserError: by how much it is too large, and these changes.
[[noreturn]] void throw_too_large(const PlanRequest& request, const SearchResult& result);

}  // namespace teratron::plan
