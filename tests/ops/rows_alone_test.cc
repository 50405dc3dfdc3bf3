// A row of a product, and a sequence in its cache, have the bits that they have without the others around them.
#include <gtest/gtest.h>

#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

std::unique_ptr<Backend> some_cpu_backend(Random& random) {
  return make_cpu_backend(
      {.compute_dtype = random.one_of({DType::kF32, DType::kBF16, DType::kF16}), .bf16_products = random.coin()});
}

TEST(RowsAlone, ProductsHaveTheBitsOfACallOfTheirOwn) {
  Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const auto backend = some_cpu_backend(random);
    const std::int64_t rows = 1 + random.below(random.coin() ? 40 : 150), inputs = 1 + random.below(300),
                       outputs = 1 + random.below(200);
    const Tensor x = make_tensor(*backend, {rows, inputs}, random.normals({rows, inputs})),
                 weight = make_tensor(*backend, {outputs, inputs}, random.normals({outputs, inputs})),
                 bias = make_tensor(*backend, {outputs}, random.normals({outputs}));
    const auto product = [&](std::int64_t begin, std::int64_t end) {
      const Tensor y(*backend, backend->compute_dtype(), {end - begin, outputs});
      const Tensor activated(*backend, backend->compute_dtype(), {end - begin, outputs});
      backend->linear_forward({.y = y,
                               .x = x.ref().slice(0, begin, end),
                               .weight = weight,
                               .bias = bias,
                               .activation = Activation::kGeluTanh,
                               .activated = activated,
                               .rows_alone = true});
      return download_values(*backend, activated);
    };
    const Values all = product(0, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Values own(all.begin() + row * outputs, all.begin() + (row + 1) * outputs);
      ASSERT_EQ(product(row, row + 1), own) << "row " << row << " of " << rows << " I=" << inputs << " O=" << outputs;
    }
  }
}

TEST(RowsAlone, SequencesWithCachesOfAnyLengthsHaveTheBitsOfACallOfTheirOwn) {
  Random random(4);
  for (int trial = 0; trial < 30; ++trial) {
    const auto backend = some_cpu_backend(random);
    const std::int64_t batch = 1 + random.below(6), heads = 1 + random.below(3), size = 1 + random.below(70);
    const std::int64_t tokens = 1 + random.below(6), room = 60;
    const Shape shape{batch, tokens, heads, size}, cache{batch, room, heads, size};
    const Values keys = random.normals(cache), values = random.normals(cache);
    const Tensor q = make_tensor(*backend, shape, random.normals(shape)),
                 k = make_tensor(*backend, shape, random.normals(shape)),
                 v = make_tensor(*backend, shape, random.normals(shape));
    std::vector<std::int32_t> lengths;
    for (std::int64_t b = 0; b < batch; ++b) {
      lengths.push_back(static_cast<std::int32_t>(random.below(room - tokens + 1)));
    }
    const auto attend = [&](std::int64_t begin, std::int64_t end) {
      const Tensor all_keys = make_tensor(*backend, cache, keys), all_values = make_tensor(*backend, cache, values);
      const Tensor out(*backend, backend->compute_dtype(), {end - begin, tokens, heads, size});
      const Tensor length(*backend, DType::kI32, {end - begin});
      backend->upload(length, lengths.data() + begin);
      backend->cached_attention({.out = out,
                                 .q = q.ref().slice(0, begin, end),
                                 .k = k.ref().slice(0, begin, end),
                                 .v = v.ref().slice(0, begin, end),
                                 .keys = all_keys.ref().slice(0, begin, end),
                                 .values = all_values.ref().slice(0, begin, end),
                                 .lengths = length,
                                 .scale = 0.2});
      return download_values(*backend, out);
    };
    const Values all = attend(0, batch);
    const std::int64_t elements = tokens * heads * size;
    for (std::int64_t b = 0; b < batch; ++b) {
      ASSERT_EQ(attend(b, b + 1), Values(all.begin() + b * elements, all.begin() + (b + 1) * elements)) << b;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
