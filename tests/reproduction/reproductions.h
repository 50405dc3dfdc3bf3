// The papers' reproductions, made once: each takes a second or two.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reproduction/reproduction.h"

namespace teratron::testing {

using namespace plan;

inline const Reproduction& reproduction_of(std::string_view paper) {
  static std::map<std::string, Reproduction, std::less<>> made;
  const auto found = made.find(paper);
  return found != made.end() ? found->second : made.emplace(paper, reproduce(paper)).first->second;
}

// Papers, whose cells are read one by one, without the runs of data/published.
inline std::vector<std::string_view> papers() { return {"megatron", "terapipe", "llama3", "seq1f1b", "zero-bubble"}; }

}  // namespace teratron::testing
