// The checks of one Backend call: every view is there, of the right dtype, layout and shape, and outputs share no
// memory with other views. Messages name the operation and the view.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/float_types.h"
#include "ops/operations.h"

namespace teratron {

struct NamedView {
  std::string_view name;
  TensorRef view;
};

class ArgumentChecks {
 public:
  ArgumentChecks(std::string_view operation, DType compute_dtype)
      : operation_(operation), compute_dtype_(compute_dtype) {}

  DType compute() const { return compute_dtype_; }
  DType accumulation() const { return accumulation_dtype_of(compute_dtype_); }

  // Contiguous views of the compute type, or of `dtype`; returned as the rank that kernels expect.
  TensorRef matrix(std::string_view name, const TensorRef& view, std::int64_t rows, std::int64_t columns) const;
  TensorRef matrix(std::string_view name, const TensorRef& view, std::int64_t rows, std::int64_t columns,
                   DType dtype) const;
  TensorRef vector(std::string_view name, const TensorRef& view, std::int64_t size) const;
  TensorRef vector(std::string_view name, const TensorRef& view, std::int64_t size, DType dtype) const;
  // Exactly this shape.
  void tensor(std::string_view name, const TensorRef& view, const Shape& shape) const;
  void tensor(std::string_view name, const TensorRef& view, const Shape& shape, DType dtype) const;
  // Exactly this shape, any strides but unit stride along the last axis.
  void strided(std::string_view name, const TensorRef& view, const Shape& shape) const;
  void strided(std::string_view name, const TensorRef& view, const Shape& shape, DType dtype) const;

  // A matrix [rows, columns] in tiles (tensor/weight_tiles.h).
  void tiles(std::string_view name, const TensorRef& view, std::int64_t rows, std::int64_t columns) const;

  // Rows and columns of a view, from which the caller derives the shapes of the others. InternalError: no columns.
  std::int64_t rows(std::string_view name, const TensorRef& view) const;
  std::int64_t columns(std::string_view name, const TensorRef& view) const;

  void rank(std::string_view name, const TensorRef& view, int expected) const;
  void present(std::string_view name, const TensorRef& view, DType dtype) const;
  void contiguous(std::string_view name, const TensorRef& view) const;
  void floating(std::string_view name, const TensorRef& view) const;
  void same_shape(const NamedView& a, const NamedView& b) const;
  void same_memory(const NamedView& a, const NamedView& b) const;
  // No output overlaps another output or an input. Absent views are skipped. Two strided views may be interleaved, as
  // parts of one packed projection are, so of such a pair only the first elements must differ.
  void separate(std::initializer_list<NamedView> outputs, std::initializer_list<NamedView> inputs) const;

  // The positions [first_position, first_position + tokens) and, for attention, heads that a mask is drawn for.
  void dropout(const Dropout& dropout, std::int64_t tokens) const;
  void attention_dropout(const Dropout& dropout, std::int64_t queries, std::int64_t keys, std::int64_t heads) const;

  void require(bool condition, std::string_view what) const;

 private:
  [[noreturn]] void fail(std::string_view message) const;
  template <class A, class B>
  void equal(const A& actual, const B& expected, std::string_view property, std::string_view name) const;

  std::string_view operation_;
  DType compute_dtype_;
};

// Checks an operation's arguments by the rules in ops/operations.h, and gives views the form that do_* members are
// promised. Returns whether there are rows, so that there is something to compute.
#define TERATRON_CHECK(operation, Arguments) \
  bool check_arguments(Arguments& args, const ArgumentChecks& checks);  // NOLINT(bugprone-macro-parentheses): a type
TERATRON_OPERATIONS(TERATRON_CHECK)
#undef TERATRON_CHECK

// The dropout of a call that has one, else null.
template <class Arguments>
Dropout* dropout_of(Arguments& args) {
  if constexpr (requires { args.dropout; }) {
    return &args.dropout;
  } else if constexpr (requires { args.add.dropout; }) {
    return &args.add.dropout;
  } else if constexpr (requires { args.forward.dropout; }) {
    return &args.forward.dropout;
  } else {
    return nullptr;
  }
}

// Views that a call without rows sets to zero: the gradients that it does not add to.
template <class Arguments>
std::vector<TensorRef> cleared_without_rows(const Arguments&) {
  return {};
}
std::vector<TensorRef> cleared_without_rows(const LinearWeightGradient& args);
std::vector<TensorRef> cleared_without_rows(const NormBackward& args);
std::vector<TensorRef> cleared_without_rows(const ResidualAddNormBackward& args);
std::vector<TensorRef> cleared_without_rows(const AttentionBackward& args);
std::vector<TensorRef> cleared_without_rows(const EmbeddingBackward& args);

}  // namespace teratron
