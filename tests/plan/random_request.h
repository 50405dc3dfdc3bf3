// Small random models on small random clusters.
#pragma once

#include <string>

#include "base/philox.h"
#include "plan/search/layout_search.h"

namespace teratron::testing {

inline std::int64_t drawn(RandomSequence& random, const std::vector<std::int64_t>& values) {
  return values[random.below(values.size())];
}

inline double drawn_between(RandomSequence& random, double least, double most) {
  return least + (most - least) * random.uniform();
}

// Of up to 8 devices, on one host or two, with much memory.
inline Cluster random_cluster(RandomSequence& random) {
  Cluster cluster{.name = "random", .devices = drawn(random, {1, 2, 3, 4, 6, 8})};
  const double peak = drawn_between(random, 1e12, 1e14);
  cluster.device = {"device", 1e12, peak, peak / 4, drawn_between(random, 1e11, 1e12)};
  const std::int64_t of_host = cluster.devices % 2 == 0 && random.below(2) == 0 ? cluster.devices / 2 : cluster.devices;
  if (cluster.devices > 1 && of_host > 1) {
    cluster.links.push_back({.name = "inner",
                             .devices = of_host,
                             .bandwidth = drawn_between(random, 1e10, 1e11),
                             .latency = drawn_between(random, 1e-6, 1e-5)});
  }
  if (of_host < cluster.devices) {
    cluster.links.push_back({.name = "outer",
                             .devices = cluster.devices,
                             .bandwidth = drawn_between(random, 1e9, 1e10),
                             .is_shared = of_host > 1 && random.below(2) == 0,
                             .latency = drawn_between(random, 1e-6, 1e-4)});
  }
  return cluster;
}

inline plan::PlanRequest random_request(RandomSequence& random) {
  plan::PlanRequest request{.cluster = random_cluster(random), .vocab_size = drawn(random, {50, 500, 5000})};
  TrainConfig& config = request.config;
  config.data_path = {"corpus"};
  config.train_iters = 1;
  config.model.config.num_layers = drawn(random, {2, 3, 4, 6});
  config.model.config.num_attention_heads = drawn(random, {2, 4, 6});
  config.model.config.hidden_size = config.model.config.num_attention_heads * drawn(random, {8, 32, 64});
  config.model.config.vocab_size = request.vocab_size;
  config.model.seq_length = drawn(random, {16, 64, 128, 192});
  config.batch.global_batch_size = drawn(random, {1, 2, 3, 4, 6});
  config.backend.bf16 = random.below(2) == 0;
  return request;
}

}  // namespace teratron::testing
