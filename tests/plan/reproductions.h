// The papers' reproductions, made once: each takes a second or two.
#pragma once

#include <map>
#include <string>

#include "plan/reproduction/reproduction.h"

namespace teratron::plan {

inline const Reproduction& reproduction_of(std::string_view paper) {
  static std::map<std::string, Reproduction, std::less<>> made;
  const auto found = made.find(paper);
  return found != made.end() ? found->second : made.emplace(paper, reproduce(paper)).first->second;
}

}  // namespace teratron::plan
