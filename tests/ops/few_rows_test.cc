// Linear layers compute few rows in another way than many (ops/cpu/products/linear.cc), with the same bits: how a
// sequence is cut into slices or a prompt into parts does not show.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/trials.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

TEST(FewRows, HaveTheBitsThatTheyHaveAmongMany) {
  Random random(5);
  for (int trial = 0; trial < trials(24); ++trial) {
    const DType dtype = random.one_of({DType::kF32, DType::kBF16, DType::kF16});
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    const std::int64_t rows = 300, inputs = 500 + random.below(900),
                       outputs = 1 + random.below(random.coin() ? 150 : 2500);
    const Tensor x = make_tensor(*backend, {rows, inputs}, random.normals({rows, inputs})),
                 weight = make_tensor(*backend, {outputs, inputs}, random.normals({outputs, inputs}, 0, 0.05)),
                 bias = make_tensor(*backend, {outputs}, random.normals({outputs}));
    const bool has_bias = random.coin();
    const Activation activation =
        random.one_of({Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu});
    const auto product = [&](std::int64_t begin, std::int64_t end) {
      const Tensor y(*backend, dtype, {end - begin, outputs}), activated(*backend, dtype, {end - begin, outputs});
      LinearForward forward{.y = y, .x = x.ref().slice(0, begin, end), .weight = weight, .activation = activation};
      if (has_bias) forward.bias = bias;
      if (activation != Activation::kNone) forward.activated = activated;
      backend->linear_forward(forward);
      Values values = download_values(*backend, y);
      if (activation != Activation::kNone) {
        const Values more = download_values(*backend, activated);
        values.insert(values.end(), more.begin(), more.end());
      }
      return values;
    };
    const Values all = product(0, rows);
    const std::int64_t count = 5 + random.below(252), begin = random.below(rows - count + 1);
    const Values part = product(begin, begin + count);
    for (std::size_t half = 0; half * static_cast<std::size_t>(count * outputs) < part.size(); ++half) {
      const auto h = static_cast<std::int64_t>(half);
      const auto first = all.begin() + (h * rows + begin) * outputs, own = part.begin() + h * count * outputs;
      ASSERT_TRUE(std::equal(own, own + count * outputs, first))
          << "rows " << begin << " .. " << begin + count << ", I=" << inputs << " O=" << outputs << ", "
          << name_of(dtype) << ", activation " << static_cast<int>(activation);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
