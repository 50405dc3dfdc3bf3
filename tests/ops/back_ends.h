// The back ends under test. A new one joins with a line in back_ends.cc.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ops/trials/operations.h"

namespace teratron::testing {

struct BackEnd {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  std::vector<Operation> (*operations)() = host_operations;
  bool tensor_cores = false;  // make its matrix products
};

std::vector<BackEnd> back_ends();

inline void PrintTo(const BackEnd& back_end, std::ostream* out) { *out << back_end.name; }

}  // namespace teratron::testing
