// A trial: one call of one operation with named arguments, which any back end can run. The harness gives every argument
// memory with poisoned borders at any alignment, runs the call, and returns what the outputs hold.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/trials/host.h"

namespace teratron::testing {

// How far the arithmetic of an output may be from the reference: |error| <= relative * (rms of the reference + floor).
// The floor is the size of the summands, for results that may cancel to nothing. An output of a 16-bit type may also be
// off by what its one rounding does, and nothing more (allowed_error), unless it was made from other outputs as they
// were stored: then their errors, of `carried` unit roundoffs of storage relative to (rms + floor), come first.
struct Tolerance {
  double relative = 0;
  double floor = 0;
  double carried = 0;
  double tensor_core_terms = 0;  // of a matrix product
  double approximations = 0;     // unit roundoffs of f16, of functions that the hardware approximates
  double rounded_products = 0;   // unit roundoffs of storage, of products that are stored before they are used

  Tolerance carrying(double roundoffs) const {
    Tolerance result = *this;
    result.carried = roundoffs;
    return result;
  }
  // Adds the errors of back ends that multiply matrices by tensor cores. These round the sum so far toward zero at
  // every step of at least 8 terms, by half a unit of fp32 in the mean, so that errors grow with the number of steps;
  // twice that for the largest of many elements. Their libraries' tanh is within 2^-11, and they may round a product
  // before it is multiplied by at most `rounded`.
  Tolerance in_products(std::int64_t terms, double approximated = 0, double rounded = 0) const {
    Tolerance result = *this;
    result.tensor_core_terms = static_cast<double>(terms);
    result.approximations = approximated;
    result.rounded_products = rounded;
    return result;
  }
};

constexpr double kUnitRoundoff = 0x1p-24;  // of fp32

// Largest rounding error of a type: relative to a normal number, and absolute for subnormal numbers. Zero for fp32,
// whose rounding is part of Tolerance::relative, and for f64, whose does not matter.
struct StorageRounding {
  double relative = 0, absolute = 0;
};
StorageRounding rounding_of(DType storage);

// For each element of an output stored as `stored` by a back end that computes with `compute`, in tensor cores or not.
// Tolerance 0 stands for values that are copied or selected: exact.
double allowed_error(const Tolerance& tolerance, double expected, double rms, DType stored, DType compute,
                     bool tensor_cores);

// Tolerance of a result that sums `terms` products of independent values in fp32, in any order. Each of the partial
// sums, which grow as the square root of their length, is rounded once; the standard deviation of the total, relative
// to the result's, is about 0.3 * sqrt(terms) roundoffs. 4 * sqrt(terms) leaves 10 deviations for the largest of many
// elements; `steps` counts the roundings before and after the sum, exp and tanh as four each.
Tolerance sum_tolerance(std::int64_t terms, double steps = 4, double floor = 0);

enum class Role { kInput, kOutput, kInOut };
enum class Precision { kCompute, kAccumulation, kDouble, kBF16, kIds };  // operations.h's C and A, f64, bf16 and i32

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
  Precision precision = Precision::kCompute;
  Tolerance tolerance;  // of outputs

  DType dtype(DType compute) const;  // in a back end that computes with that
};

struct Trial {
  std::string sizes;  // for messages
  std::vector<Argument> arguments;
  std::function<void(Backend&, const Views&)> run;

  Trial& input(std::string name, const Shape& shape, Values values, Precision precision = Precision::kCompute);
  Trial& ids(std::string name, const Shape& shape, Values values);
  Trial& output(std::string name, const Shape& shape, Tolerance tolerance, Precision precision = Precision::kCompute);
  Trial& in_out(std::string name, const Shape& shape, Values values, Tolerance tolerance,
                Precision precision = Precision::kCompute);
};

// Memory after a run: each argument's values, and its bytes with the borders.
struct Outcome {
  std::map<std::string, Values> values;
  std::map<std::string, std::vector<std::byte>> memory;
  std::vector<std::string> damaged_borders;  // arguments around which something was written
};

// Every argument starts `offset` elements after an aligned address. Inputs are first rounded to what a back end that
// computes with `input_dtype` holds, so that one of more precision is given the same numbers.
Outcome execute(const Trial& trial, Backend& backend, std::int64_t offset, DType input_dtype);

}  // namespace teratron::testing
