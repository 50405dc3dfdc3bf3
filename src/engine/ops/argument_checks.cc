#include "ops/argument_checks.h"

#include <fmt/format.h>

#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

// Bytes from a view's first element to the end of its last.
struct Extent {
  const std::byte* begin;
  const std::byte* end;
};

Extent extent_of(const TensorRef& view) {
  std::int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) last += (view.dim(axis) - 1) * view.stride(axis);
  const auto* begin = static_cast<const std::byte*>(view.data);
  return {begin, begin + (last + 1) * size_of(view.dtype)};
}

bool overlap(const TensorRef& a, const TensorRef& b) {
  if (!a || !b || a.elements() == 0 || b.elements() == 0) return false;
  if (a.data == b.data) return true;
  if (!a.is_contiguous() && !b.is_contiguous()) return false;  // interleaved, as q, k and v in one packed projection
  const Extent x = extent_of(a), y = extent_of(b);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace

void ArgumentChecks::fail(std::string_view message) const {
  throw InternalError(fmt::format("{}: {}", operation_, message));
}

void ArgumentChecks::require(bool condition, std::string_view what) const {
  if (!condition) fail(fmt::format("check failed: {}", what));
}

template <class A, class B>
void ArgumentChecks::equal(const A& actual, const B& expected, std::string_view property, std::string_view name) const {
  if (!(actual == expected)) fail(fmt::format("{} of {}: got {}, expected {}", property, name, actual, expected));
}

void ArgumentChecks::present(std::string_view name, const TensorRef& view, DType dtype) const {
  if (!view && view.elements() > 0) fail(fmt::format("{} is missing", name));
  equal(name_of(view.dtype), name_of(dtype), "dtype", name);
}

void ArgumentChecks::contiguous(std::string_view name, const TensorRef& view) const {
  if (!view.is_contiguous()) fail(fmt::format("{} {} is not contiguous", name, view.shape));
}

void ArgumentChecks::rank(std::string_view name, const TensorRef& view, int expected) const {
  equal(view.shape.rank(), expected, "rank", name);
}

std::int64_t ArgumentChecks::columns(std::string_view name, const TensorRef& view) const {
  if (view.shape.rank() == 0 || view.dim(-1) == 0) fail(fmt::format("{} {} has no columns", name, view.shape));
  return view.dim(-1);
}

std::int64_t ArgumentChecks::rows(std::string_view name, const TensorRef& view) const {
  return view.elements() / columns(name, view);
}

void ArgumentChecks::floating(std::string_view name, const TensorRef& view) const {
  if (!is_floating(view.dtype))
    fail(fmt::format("dtype of {}: got {}, expected a floating one", name, name_of(view.dtype)));
}

TensorRef ArgumentChecks::matrix(std::string_view name, const TensorRef& view, std::int64_t rows,
                                 std::int64_t columns) const {
  return matrix(name, view, rows, columns, compute_dtype_);
}

TensorRef ArgumentChecks::matrix(std::string_view name, const TensorRef& view, std::int64_t rows, std::int64_t columns,
                                 DType dtype) const {
  present(name, view, dtype);
  contiguous(name, view);
  if (view.shape.rank() == 0 || view.dim(-1) != columns || view.elements() != rows * columns) {
    fail(fmt::format("shape of {}: got {}, expected {} rows of {}", name, view.shape, rows, columns));
  }
  return view.reshape({rows, columns});
}

TensorRef ArgumentChecks::vector(std::string_view name, const TensorRef& view, std::int64_t size) const {
  return vector(name, view, size, compute_dtype_);
}

TensorRef ArgumentChecks::vector(std::string_view name, const TensorRef& view, std::int64_t size, DType dtype) const {
  present(name, view, dtype);
  contiguous(name, view);
  if (view.elements() != size) {
    fail(fmt::format("shape of {}: got {}, expected {} elements", name, view.shape, size));
  }
  return view.reshape({size});
}

void ArgumentChecks::tiles(std::string_view name, const TensorRef& view, std::int64_t rows,
                           std::int64_t columns) const {
  require(is_tiles(view.dtype), "weights in tiles are tiles");
  require(columns % kTileColumns == 0, "a matrix in tiles has whole blocks of columns");
  tensor(name, view, tiles_of({rows, columns}), view.dtype);
}

void ArgumentChecks::tensor(std::string_view name, const TensorRef& view, const Shape& shape) const {
  tensor(name, view, shape, compute_dtype_);
}

void ArgumentChecks::tensor(std::string_view name, const TensorRef& view, const Shape& shape, DType dtype) const {
  equal(view.shape, shape, "shape", name);
  present(name, view, dtype);
  contiguous(name, view);
}

void ArgumentChecks::strided(std::string_view name, const TensorRef& view, const Shape& shape) const {
  strided(name, view, shape, compute_dtype_);
}

void ArgumentChecks::strided(std::string_view name, const TensorRef& view, const Shape& shape, DType dtype) const {
  equal(view.shape, shape, "shape", name);
  present(name, view, dtype);
  if (shape[-1] > 1) equal(view.stride(-1), 1, "stride of the last axis", name);
}

void ArgumentChecks::same_shape(const NamedView& a, const NamedView& b) const {
  equal(a.view.shape, b.view.shape, "shape", a.name);
}

void ArgumentChecks::same_memory(const NamedView& a, const NamedView& b) const {
  if (a.view.data != b.view.data) fail(fmt::format("{} and {} must be the same memory", a.name, b.name));
}

void ArgumentChecks::separate(std::initializer_list<NamedView> outputs, std::initializer_list<NamedView> inputs) const {
  const auto check_pair = [this](const NamedView& output, const NamedView& other) {
    if (overlap(output.view, other.view)) fail(fmt::format("{} overlaps {} in memory", output.name, other.name));
  };
  for (const NamedView* output = outputs.begin(); output != outputs.end(); ++output) {
    for (const NamedView* other = output + 1; other != outputs.end(); ++other) check_pair(*output, *other);
    for (const NamedView& input : inputs) check_pair(*output, input);
  }
}

void ArgumentChecks::dropout(const Dropout& dropout, std::int64_t tokens) const {
  if (!dropout.active()) return;
  if (dropout.counters) tensor("dropout's counters", dropout.counters, {2}, DType::kI32);
  require(dropout.probability < 1 && dropout.threshold() < 65536, "the dropout probability is below 1");
  require(dropout.first_sample >= 0 && dropout.first_position >= 0, "dropout: positions are not negative");
  require(dropout.first_position + tokens <= dropout.sequence_length, "dropout: the tokens are within the sequence");
}

void ArgumentChecks::attention_dropout(const Dropout& dropout, std::int64_t queries, std::int64_t keys,
                                       std::int64_t heads) const {
  if (!dropout.active()) return;
  this->dropout(dropout, queries);
  require(dropout.first_position >= keys - queries, "dropout: the first key's position is not negative");
  require(dropout.first_head >= 0 && dropout.first_head + heads <= dropout.heads,
          "dropout: the heads are within all heads");
}

}  // namespace teratron
