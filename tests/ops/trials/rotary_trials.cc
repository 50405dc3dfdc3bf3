#include <cmath>

#include "ops/trials/operations.h"

namespace teratron::testing {

// Some heads of a packed projection or all of a tensor's, whole or in part.
Trial rotary_trial(Random& random) {
  const std::int64_t batch = 1 + random.below(3), tokens = some_rows(random), heads = 1 + random.below(4);
  const auto pairs = random.one_of<std::int64_t>({1, 2, 7, 8, 20, 32, 64});
  const std::int64_t head_size = 2 * pairs + random.one_of<std::int64_t>({0, 0, 1, 6}), others = random.below(3);
  const std::int64_t first_position = random.below(5), positions = first_position + tokens + random.below(3);
  const bool has_ids = positions > 0 && random.coin(), inverse = random.coin();
  const RotaryPairs kind = random.one_of({RotaryPairs::kHalves, RotaryPairs::kNeighbours});
  Trial trial{.sizes = fmt::format("B={} S={} H={} of {} D={} R={} positions={}+{} ids={} inverse={} kind={}", batch,
                                   tokens, heads, heads + others, head_size, pairs, first_position, positions, has_ids,
                                   inverse, static_cast<int>(kind)),
              .arguments = {},
              .run = {}};
  Values table;
  for (std::int64_t p = 0; p < positions; ++p) {
    std::vector<double> angles;
    for (std::int64_t r = 0; r < pairs; ++r) {
      angles.push_back(static_cast<double>(p) * std::pow(100, -static_cast<double>(r) / static_cast<double>(pairs)));
    }
    for (const double angle : angles) table.push_back(std::cos(angle));
    for (const double angle : angles) table.push_back(std::sin(angle));
  }
  const Shape shape{batch, tokens, heads + others, head_size};
  trial.in_out("x", shape, random.normals(shape), sum_tolerance(2, 4, 1));
  trial.input("table", {positions, 2, pairs}, table, Precision::kAccumulation);
  if (has_ids) {
    Values ids;
    for (std::int64_t i = 0; i < batch * tokens; ++i) ids.push_back(static_cast<double>(random.below(positions)));
    trial.ids("position_ids", {batch, tokens}, ids);
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.rotary({.x = views["x"].slice(2, others, others + heads),
                    .table = views["table"],
                    .first_position = first_position,
                    .position_ids = views["position_ids"],
                    .pairs = kind,
                    .inverse = inverse});
  };
  return trial;
}

}  // namespace teratron::testing
