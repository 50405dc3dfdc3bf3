// Figure 3: the forward of one layer of the 1B by the tokens that it takes.
#include <fmt/format.h>

#include "cluster/cluster_file.h"
#include "plan/costs/layer_costs.h"
#include "plan/reproduction/reproduction.h"
#include "plan/reproduction/terapipe_figures.h"

namespace teratron::plan::terapipe {
namespace {

class Layer {
 public:
  explicit Layer(const Cluster& cluster) : costs_(model(), {}, cluster) {}
  double milliseconds(std::int64_t tokens) const { return costs_.layer({.tokens = tokens}).forward; }
  double beside_flat(std::int64_t tokens) const { return milliseconds(tokens) / milliseconds(kFlatTokens); }

 private:
  static ModelConfig model() {
    const ModelPreset& preset = find_model_preset("gpt3-1B");
    ModelConfig model;
    model.hidden_size = preset.hidden_size;
    model.num_attention_heads = preset.num_attention_heads;
    return model;
  }
  ModelCosts costs_;
};

constexpr const char* kNoFloor =
    "a product of few rows takes a GPU as long as one of a whole tile; here its share of the peak falls smoothly with "
    "a "
    "side of 32, and only starts of kernels and the reading of weights do not shrink";

}  // namespace

void add_figure_3(Reproduction& reproduction) {
  const Cluster device = find_cluster("p3.16xlarge", 1);
  const Layer paper(device), teratron(run_by_teratron(device));
  for (const std::int64_t tokens : {1, 32, 128}) {
    reproduction.cells.push_back({.table = fmt::format("Figure 3, time beside that of {} tokens", kFlatTokens),
                                  .name = fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s"),
                                  .unit = "x",
                                  .source = "section 3.2",
                                  .published = 1,
                                  .ours = paper.beside_flat(tokens),
                                  .teratron = teratron.beside_flat(tokens),
                                  .cause = kNoFloor});
  }
  Curve curve{.title = "Figure 3, forward of a layer of the 1B on one V100",
              .x_axis = "tokens",
              .unit = "ms",
              .published = fmt::format("flat up to {} tokens (section 3.2)", kFlatTokens),
              .points = {}};
  for (std::int64_t tokens = 1; tokens <= kTokens; tokens *= 2) {
    curve.points.push_back({.x = fmt::format("{}", tokens),
                            .ours = paper.milliseconds(tokens),
                            .teratron = teratron.milliseconds(tokens)});
  }
  reproduction.curves.push_back(std::move(curve));
}

}  // namespace teratron::plan::terapipe
