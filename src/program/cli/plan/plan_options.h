// The options of `teratron plan`: a model, a cluster, and what of the layout is decided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "options/fields.h"
#include "plan/search/layout_search.h"

namespace teratron {

struct PlanOptions {
  PlanOptions();

  TrainConfig train;        // as `teratron train` takes it, but for the layout that is searched
  plan::FixedLayout fixed;  // the flags of the layout that were given
  bool precision_given = false;
  std::string cluster, reproduce;
  std::int64_t devices = 0;  // 0: as many as the cluster has
  double tokens = 0;         // to train on; 0: optimal_tokens()
  double corpus_tokens = 0;  // of an epoch; 0: not known
  double price = 0;          // of a device and hour, in dollars; 0: not known
  double budget = 0;         // dollars; 0: none
  bool largest_batch = false, explain = false;
  std::int64_t runners_up = 5;
  bool gives_runners_up = false;
  // Cluster of `cluster`, if that was read already: a stream is read once.
  std::optional<Cluster> described;
  std::filesystem::path json, svg, html;

  Faults faults() const;
  // The vocabulary, the precision and the back end filled in. UserError: the cluster.
  plan::PlanRequest request() const;
  double tokens_of(const plan::PlanRequest& request) const;
};

FieldList fields_of(PlanOptions& options);

}  // namespace teratron
