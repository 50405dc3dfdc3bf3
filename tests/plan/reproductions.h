// Both papers' reproductions, made once: each takes a second or two.
#pragma once

#include "plan/reproduction/reproduction.h"

namespace teratron::plan {

inline const Reproduction& reproduction_of(std::string_view paper) {
  static const Reproduction megatron = reproduce("megatron"), terapipe = reproduce("terapipe");
  return paper == "megatron" ? megatron : terapipe;
}

}  // namespace teratron::plan
