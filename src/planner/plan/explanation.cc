#include "plan/explanation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "console/readable.h"
#include "console/text_table.h"
#include "model/make_model.h"

namespace teratron::plan {
namespace {

// "0-7" for neighbours; else "0 8 16 24", without the middle ones of many.
std::string text_of(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  const int first = ranks.front(), last = ranks.back();
  if (ranks.size() > 2 && last - first + 1 == std::ssize(ranks)) return fmt::format("{}-{}", first, last);
  if (ranks.size() <= kMost) return fmt::format("{}", fmt::join(ranks, " "));
  return fmt::format("{} {} {} .. {}", first, ranks[1], ranks[2], last);
}

std::string text_of(const std::vector<std::vector<int>>& groups) {
  std::string text = text_of(groups.front());
  if (groups.size() > 1) text += "; " + text_of(groups[1]);
  if (groups.size() > 2) text += (groups.size() > 3 ? "; ..; " : "; ") + text_of(groups.back());
  return text;
}

std::string groups_text(const MeshShape& shape, const Cluster& cluster) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft});
  const auto row = [&](const char* name, const std::vector<std::vector<int>>& groups) {
    table.row({name, fmt::format("{} of {}", groups.size(), groups.front().size()), text_of(groups)});
  };
  const std::vector<std::vector<int>> tensor = groups_of(shape, &RankCoordinates::tensor);
  row("tensor", tensor);
  row("pipeline", groups_of(shape, &RankCoordinates::pipeline));
  row("data", groups_of(shape, &RankCoordinates::data));
  std::string text = "Groups of ranks (Megatron-LM, Figure 8)\n" + table.text();
  if (shape.tensor == 1 || cluster.links.size() < 2) return text;
  const std::int64_t across = groups_across_hosts(tensor, cluster);
  const std::string hosts = fmt::format("{} devices joined by {}", cluster.links[0].devices, cluster.links[0].name);
  if (across == 0) return text + fmt::format("  tensor groups lie within hosts of {}\n", hosts);
  return text + fmt::format("  {} of {} tensor groups cross hosts of {}: all layers' sums take {} there\n", across,
                            tensor.size(), hosts, cluster.links[1].name);
}

std::string text_of(const teratron::Shape& shape) { return fmt::format("{} x {}", shape[1], shape[0]); }

// The matrices of the first layer, and of the embeddings and heads.
std::string matrices_text(const StepSettings& settings, std::int64_t vocab_size) {
  const auto tensor = static_cast<int>(settings.layout.tensor_parallel);
  const std::unique_ptr<Model> model =
      make_model(settings.model.model_for(vocab_size), {0, tensor},
                 settings.pipeline.vocabulary_stages({0, static_cast<int>(settings.layout.pipeline_parallel)}));
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.row({"", "inputs x outputs", tensor > 1 ? "of the whole" : ""});
  model->visit([&](Parameter& parameter) {
    if (parameter.shape.rank() != 2 || (parameter.layer_matrix && !parameter.name.starts_with("layers.0."))) return;
    const std::string whole = parameter.is_split() ? text_of(parameter.global_shape()) : "whole on every rank";
    table.row({parameter.name, text_of(parameter.shape), tensor > 1 ? whole : ""});
  });
  return "Matrices of a rank\n" + table.text();
}

std::string loss_text(const StepSettings& settings, std::int64_t vocab_size) {
  constexpr std::int64_t kNumbers = 3;  // nn/language_model_head.h
  const std::int64_t ranks = settings.vocabulary_ranks();
  if (ranks == 1) return "";
  const ModelConfig model = settings.model.model_for(vocab_size);
  const std::int64_t columns = model.padded_vocab_size(ranks);
  const bool by_stages = ranks > settings.layout.tensor_parallel;
  std::string text =
      fmt::format("Loss: {} exchange {} numbers a token, not its {} logits: 1/{} of them (Megatron-LM, section 3)\n",
                  by_stages ? fmt::format("{} ranks of all stages", ranks) : "tensor-parallel ranks", kNumbers,
                  readable_integer(columns), readable_integer(columns / kNumbers));
  if (by_stages) {
    text += fmt::format("  the last stage sends them a token's {} normed values, and adds up as many of the gradient\n",
                        readable_integer(model.hidden_size));
  }
  return text;
}

}  // namespace

std::vector<std::vector<int>> groups_of(const MeshShape& shape, GroupRank RankCoordinates::*axis) {
  std::map<std::array<int, 3>, std::vector<int>> groups;
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    RankCoordinates place = rank_coordinates(shape, rank);
    (place.*axis).rank = 0;
    groups[{place.data.rank, place.pipeline.rank, place.tensor.rank}].push_back(rank);
  }
  std::vector<std::vector<int>> all;
  for (auto& [place, ranks] : groups) all.push_back(std::move(ranks));
  return all;
}

std::int64_t groups_across_hosts(const std::vector<std::vector<int>>& groups, const Cluster& cluster) {
  if (cluster.links.size() < 2) return 0;
  return std::ranges::count_if(
      groups, [&](const std::vector<int>& ranks) { return cluster.level_between(ranks.front(), ranks.back()) > 0; });
}

std::string explanation(const StepSettings& settings, const Cluster& cluster, std::int64_t vocab_size) {
  return groups_text(settings.layout.mesh(), cluster) + matrices_text(settings, vocab_size) +
         loss_text(settings, vocab_size);
}

}  // namespace teratron::plan
