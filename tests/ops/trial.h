// A trial: one call of one operation with named arguments, which any back end can run. The harness gives every argument
// memory with poisoned borders at any alignment, runs the call, and returns what the outputs hold.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/host.h"

namespace teratron::testing {

// How far an output may be from the reference: |error| <= relative * (rms of the reference + floor). The floor is the
// size of the summands, for results that may cancel to nothing.
struct Tolerance {
  double relative = 0;
  double floor = 0;
};

constexpr double kUnitRoundoff = 0x1p-24;  // of fp32

// Of a result that sums `terms` products of independent values in fp32, in any order. Each of the partial sums, which
// grow as the square root of their length, is rounded once; the standard deviation of the total, relative to the
// result's, is about 0.3 * sqrt(terms) roundoffs. 4 * sqrt(terms) leaves 10 deviations for the largest of many
// elements; `steps` counts the roundings before and after the sum, exp and tanh as four each.
Tolerance sum_tolerance(std::int64_t terms, double steps = 4, double floor = 0);

enum class Role { kInput, kOutput, kInOut };

class Views {
 public:
  void set(const std::string& name, const TensorRef& view) { views_[name] = view; }
  TensorRef operator[](const std::string& name) const;  // an absent name is an absent view

 private:
  std::map<std::string, TensorRef> views_;
};

struct Argument {
  std::string name;
  Shape shape;
  Role role;
  Values values;  // of inputs
  bool is_ids = false;
  Tolerance tolerance;  // of outputs
};

struct Trial {
  std::string sizes;  // for messages
  std::vector<Argument> arguments;
  std::function<void(Backend&, const Views&)> run;

  Trial& input(std::string name, const Shape& shape, Values values);
  Trial& ids(std::string name, const Shape& shape, Values values);
  Trial& output(std::string name, const Shape& shape, Tolerance tolerance);
  Trial& in_out(std::string name, const Shape& shape, Values values, Tolerance tolerance);
};

// What a run left in memory: each argument's values, and its bytes with the borders.
struct Outcome {
  std::map<std::string, Values> values;
  std::map<std::string, std::vector<std::byte>> memory;
  std::vector<std::string> damaged_borders;  // arguments around which something was written
};

// Every argument starts `offset` elements behind an aligned address.
Outcome execute(const Trial& trial, Backend& backend, std::int64_t offset);

}  // namespace teratron::testing
