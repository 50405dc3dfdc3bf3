#include "plan/costs/layer_costs.h"

#include <algorithm>

#include "base/error.h"
#include "model/family.h"
#include "optim/muon/newton_schulz.h"

namespace teratron::plan {
namespace {

// Reads and writes of a value in a layer's passes over memory, counted from the kernels of Megatron-LM and of this
// program: for rows of the residual stream, and for a rank's part of a row (biases, activations, reordered
// projections).
constexpr double kNormPasses = 2, kNormGradientPasses = 4;
constexpr double kResidualPasses = 3, kResidualGradientPasses = 3;  // bias, dropout and sum
constexpr double kActivationPasses = 2, kActivationGradientPasses = 3;
constexpr double kProjectionPasses = 2, kProjectionGradientPasses = 2;  // queries, keys, values, context
// Passes over keys, and over values, that slices copy: joined with those before; gradients copied, then added to.
constexpr double kCachePasses = 4, kCacheGradientPasses = 10;
constexpr double kPointKernels = 8;  // of a forward or a backward, each with its start

}  // namespace

CollectiveGroup slowest_tensor_group(const Cluster& cluster, std::int64_t tensor, std::int64_t groups) {
  constexpr double kBytes = 1e6;
  CollectiveGroup slowest{.size = tensor};
  if (tensor == 1 || cluster.links.size() < 2) return slowest;
  // The way groups lie in hosts repeats after a whole number of hosts.
  const std::int64_t differing = std::min(groups, cluster.links.end()[-2].devices);
  for (std::int64_t group = 1; group < differing; ++group) {
    const CollectiveGroup other{.first = group * tensor, .size = tensor};
    if (all_reduce_seconds(cluster, other, kBytes) > all_reduce_seconds(cluster, slowest, kBytes)) slowest = other;
  }
  return slowest;
}

struct ModelCosts::Parts {
  double products = 0;          // the four of a forward
  double last_product = 0;      // of them
  double after_up = 0;          // that, and what else follows the first product of the MLP
  double input_gradients = 0;   // theirs
  double weight_gradients = 0;  // theirs
  double attention = 0, attention_backward = 0;
  double points = 0, points_backward = 0;  // memory-bound passes
  double collectives = 0;                  // of a forward, and of a backward alike
};

ModelCosts::ModelCosts(const ModelConfig& model, const LayerSettings& settings, const Cluster& cluster)
    : model_(model),
      work_(TransformerLayer(model.layer_config(), 0, {0, static_cast<int>(settings.tensor)}).work()),
      settings_(settings) {
  take(cluster);
}

ModelCosts ModelCosts::on(const Cluster& cluster) const {
  ModelCosts costs = *this;
  costs.take(cluster);
  return costs;
}

void ModelCosts::take(const Cluster& cluster) {
  cluster_ = cluster;
  constants_ = constants_of(cluster);
  if (constants_.fp8_products != 0 && cluster.device.peak_8 == 0) {
    throw_user_error(
        "constant 'fp8_products' of cluster '{}' is 1, but its device {} has no 'peak_8'; give the rate, or 0",
        cluster.name, cluster.device.name);
  }
  const bool is_wide = settings_.dtype == DType::kF32 || settings_.dtype == DType::kF64;
  peak_ = is_wide ? cluster.device.peak_32 : cluster.device.peak_16;
  bandwidth_ = cluster.device.memory_bandwidth * constants_.memory_efficiency;
  element_ = static_cast<double>(size_of(settings_.dtype));
  milliseconds_ = 1e3 * constants_.pace;
  tensor_group_ = slowest_tensor_group(cluster, settings_.tensor, settings_.groups);
  context_group_ = {.size = settings_.context.ranks, .stride = settings_.tensor};
  vocabulary_group_ = slowest_tensor_group(cluster, settings_.tensor * settings_.vocabulary_stages,
                                           settings_.groups / settings_.vocabulary_stages);
}

double ModelCosts::kernels(double seconds, double count) const {
  const double together = seconds + count * constants_.kernel_start;
  if (constants_.cores <= 1) return together;
  return std::min(together, seconds * constants_.cores + count * constants_.lone_start);
}

double ModelCosts::product(double rows, double inner, double columns) const {
  return product_at(peak_ * constants_.product_efficiency, rows, inner, columns, 1);
}

double ModelCosts::scaled_product(double rows, double inner, double columns, bool in_layer) const {
  if (!in_8_bits(in_layer)) return product(rows, inner, columns);
  return product_at(cluster_.device.peak_8 * constants_.fp8_efficiency, rows, inner, columns, 1);
}

// `rate`: operations a second where all sides are long.
double ModelCosts::product_at(double rate, double rows, double inner, double columns, double count) const {
  const double s = constants_.saturation;
  const double share = rows / (rows + s) * inner / (inner + s) * columns / (columns + s);
  const double arithmetic = 2 * rows * inner * columns * count / (rate * share);
  const double traffic = (rows * inner + inner * columns + rows * columns) * count * element_ / bandwidth_;
  return kernels(std::max(arithmetic, traffic), 1);
}

double ModelCosts::product_of_weights(double rows, double inner, double columns, bool in_layer) const {
  // Beside few rows, weights that are packed, or that lie in memory beyond the caches, take a time of their own.
  const double scaled = in_8_bits(in_layer) ? rows * inner + inner * columns : 0;
  return scaled_product(rows, inner, columns, in_layer) + passes(inner * columns, constants_.weight_passes) +
         passes(scaled, constants_.scaling_passes);
}

double ModelCosts::weight_gradient(double rows, double inner, double columns, bool in_layer) const {
  // Where products add to what is there, they read it and write it in place of the product's own result. Else a kernel
  // of its own reads both and writes.
  const double sums = 2 * constants_.gradient_bytes + (constants_.adds_weight_gradients != 0 ? element_ : -element_);
  return scaled_product(inner, rows, columns, in_layer) / constants_.gradient_speed +
         passes(inner * columns, constants_.weight_passes) + inner * columns * sums / bandwidth_;
}

double ModelCosts::passes(double elements, double reads_and_writes) const {
  return elements * reads_and_writes * element_ / bandwidth_;
}

double ModelCosts::collective(double bytes) const { return all_reduce_seconds(cluster_, tensor_group_, bytes); }

double ModelCosts::vocabulary_collective(double bytes) const {
  return all_reduce_seconds(cluster_, vocabulary_group_, bytes);
}

ModelCosts::AttentionSizes ModelCosts::attention_sizes(const Slice& slice) const {
  const auto tokens = static_cast<double>(slice.tokens);
  return {.heads = static_cast<double>(slice.sequences * work_.attention.heads),
          .key_heads = static_cast<double>(slice.sequences * work_.attention.key_heads),
          .head_size = static_cast<double>(work_.attention.head_size),
          .queries = tokens,
          .keys = tokens + context_of(slice)};
}

double ModelCosts::context_of(const Slice& slice) const {
  const auto others = static_cast<double>(settings_.context.ranks - 1);
  return static_cast<double>(slice.context) + others * static_cast<double>(slice.tokens) / 2;
}

double ModelCosts::attention_operations(const Slice& slice) const {
  return static_cast<double>(slice.sequences * slice.tokens) *
         work_.attention.operations(static_cast<double>(slice.tokens), context_of(slice));
}

double ModelCosts::attention_rate(double head_size) const {
  return peak_ * constants_.attention_efficiency * head_size / (head_size + constants_.head_saturation);
}

// The two products of attention that writes its scores. cuBLAS wants rows of multiples of 16 bytes for its tensor
// cores; other heads run beside them, at twice the rate of fp32, as data sheets have pairs of 16-bit numbers.
double ModelCosts::score_products(const Slice& slice) const {
  const auto [heads, key_heads, d, l, keys] = attention_sizes(slice);
  constexpr std::int64_t kAlignedColumns = 8;
  const bool is_aligned = work_.attention.head_size % kAlignedColumns == 0;
  const double rate =
      (is_aligned ? peak_ : std::min(peak_, 2 * cluster_.device.peak_32)) * constants_.product_efficiency;
  return product_at(rate, l, d, keys, heads) + product_at(rate, l, keys, d, heads);
}

double ModelCosts::attention_forward(const Slice& slice) const {
  const auto [heads, key_heads, d, l, keys] = attention_sizes(slice);
  if (constants_.writes_scores != 0) {
    return score_products(slice) + passes(heads * l * keys, constants_.score_passes) + 4 * constants_.kernel_start +
           cache_copies(slice, kCachePasses);
  }
  const double arithmetic = attention_operations(slice) / attention_rate(d);
  return kernels(std::max(arithmetic, passes(d * (2 * heads * l + 2 * key_heads * keys), 1)), 1);
}

double ModelCosts::attention_backward(const Slice& slice) const {
  const auto [heads, key_heads, d, l, keys] = attention_sizes(slice);
  if (constants_.writes_scores != 0) {
    return 2 * score_products(slice) + passes(heads * l * keys, constants_.score_passes) + 4 * constants_.kernel_start +
           cache_copies(slice, kCacheGradientPasses);
  }
  // The scores are made again: five products where forward has two. Gradients of keys and values are added up.
  const double arithmetic = 2.5 * attention_operations(slice) / attention_rate(d);
  return kernels(std::max(arithmetic, passes(d * (4 * heads * l + 6 * key_heads * keys), 1)), 2);
}

// Every rank gets the keys and values of all others.
double ModelCosts::key_exchange(const Slice& slice) const {
  const auto rows = static_cast<double>(slice.sequences * slice.tokens * settings_.context.ranks);
  const auto columns = static_cast<double>(2 * work_.attention.key_heads * work_.attention.head_size);
  return all_gather_seconds(cluster_, context_group_, rows * columns * element_);
}

double ModelCosts::with_exchange(double attention, double exchange) const {
  return settings_.context.is_ring ? std::max(attention, exchange) : attention + exchange;
}

double ModelCosts::cache_copies(const Slice& slice, double reads_and_writes) const {
  if (slice.context == 0 || constants_.copies_cache == 0) return 0;
  const std::int64_t keys = slice.sequences * (slice.tokens + slice.context);
  return passes(static_cast<double>(keys * work_.attention.key_heads * work_.attention.head_size), reads_and_writes);
}

double ModelCosts::stream_elements(const Slice& slice) const {
  const double whole = static_cast<double>(slice.sequences * slice.tokens) * static_cast<double>(model_.hidden_size);
  return settings_.sequence_parallel ? whole / static_cast<double>(settings_.tensor) : whole;
}

ModelCosts::Parts ModelCosts::parts(const Slice& slice) const {
  const auto rows = static_cast<double>(slice.sequences * slice.tokens), h = static_cast<double>(model_.hidden_size);
  const double stream = stream_elements(slice) * constants_.point_passes;
  const auto norms = static_cast<double>(work_.norms), residuals = static_cast<double>(work_.residual_adds);
  const double activated = rows * static_cast<double>(work_.activated_columns) * constants_.point_passes;
  const double projected =
      rows * static_cast<double>(work_.projected_columns + work_.attention.columns()) * constants_.point_passes;
  Parts parts;
  for (const Work::Product& shape : work_.products) {
    const auto inner = static_cast<double>(shape.inputs), columns = static_cast<double>(shape.outputs);
    parts.last_product = product_of_weights(rows, inner, columns);
    parts.products += parts.last_product;
    parts.input_gradients += product_of_weights(rows, columns, inner) / constants_.gradient_speed;
    if (work_.adapters.empty()) parts.weight_gradients += weight_gradient(rows, inner, columns);
  }
  // Beside frozen weights. A x is made again for the weight gradients of B.
  for (std::size_t i = 0; i < work_.adapters.size(); ++i) {
    const auto inner = static_cast<double>(work_.adapters[i].inputs),
               columns = static_cast<double>(work_.adapters[i].outputs);
    const double forward = product_of_weights(rows, inner, columns);
    parts.products += forward;
    parts.input_gradients += product_of_weights(rows, columns, inner) / constants_.gradient_speed;
    parts.weight_gradients += weight_gradient(rows, inner, columns) + (i % 2 == 0 ? forward : 0);
  }
  const double exchange = key_exchange(slice);
  parts.attention = with_exchange(attention_forward(slice), exchange);
  // The backward needs keys and values again, and sums their gradients.
  parts.attention_backward = with_exchange(attention_backward(slice), 2 * exchange);
  parts.points = kernels(passes(stream, norms * kNormPasses + residuals * kResidualPasses) +
                             passes(activated, kActivationPasses) + passes(projected, kProjectionPasses),
                         kPointKernels);
  parts.points_backward =
      kernels(passes(stream, norms * kNormGradientPasses + residuals * kResidualGradientPasses) +
                  passes(activated, kActivationGradientPasses) + passes(projected, kProjectionGradientPasses),
              kPointKernels);
  parts.after_up =
      parts.last_product + kernels(passes(stream, kResidualPasses) + passes(activated, kActivationPasses), 3);
  parts.collectives = 2 * constants_.exposed_collectives * collective(rows * h * element_);
  return parts;
}

pipeline::PassTimes ModelCosts::layer(const Slice& slice, Recompute recompute) const {
  const Parts p = parts(slice);
  const double forward = p.products + p.attention + p.points + p.collectives;
  double again = constants_.again_products * p.products + constants_.again_points * p.points +
                 constants_.again_attention * p.attention + constants_.again_collectives * p.collectives;
  if (recompute == Recompute::kSelective) again = p.attention;
  if (recompute == Recompute::kFull) {
    // The backward needs nothing of what follows the MLP's first product.
    again = constants_.recomputes_all != 0 ? forward : forward - p.after_up - p.collectives / 2;
  }
  const double input = again + p.input_gradients + p.attention_backward + p.points_backward + p.collectives;
  return {.forward = forward * milliseconds_,
          .backward = (input + p.weight_gradients) * milliseconds_,
          .backward_input = input * milliseconds_,
          .backward_weight = p.weight_gradients * milliseconds_};
}

pipeline::PassTimes ModelCosts::embedding(const Slice& slice) const {
  const double stream = stream_elements(slice);
  const double sum =
      vocabulary_collective(static_cast<double>(slice.sequences * slice.tokens * model_.hidden_size) * element_);
  const double forward = kernels(passes(stream, 4), 2) + sum;
  const double backward = model_.adapters.active() ? 0 : kernels(passes(stream, 3), 2);  // a frozen table has none
  return {.forward = forward * milliseconds_,
          .backward = backward * milliseconds_,
          .backward_weight = backward * milliseconds_};
}

pipeline::PassTimes ModelCosts::head(const Slice& slice) const {
  const auto rows = static_cast<double>(slice.sequences * slice.tokens), h = static_cast<double>(model_.hidden_size);
  const std::int64_t ranks = settings_.tensor * settings_.vocabulary_stages;
  const std::int64_t rank_words = model_.padded_vocab_size(ranks) / ranks;
  const auto vocabulary = static_cast<double>(rank_words);
  const double norm = passes(stream_elements(slice), 6);
  const double loss = passes(rows * vocabulary, constants_.loss_passes);
  const double input = product_of_weights(rows, h, vocabulary, false) +
                       product_of_weights(rows, vocabulary, h, false) / constants_.gradient_speed +
                       kernels(loss + norm, 4) + vocabulary_collective(rows * h * element_);
  const double weight = model_.adapters.active() ? 0 : weight_gradient(rows, h, vocabulary, false);
  return {.backward = (input + weight) * milliseconds_,
          .backward_input = input * milliseconds_,
          .backward_weight = weight * milliseconds_};
}

// An end's own work and a broadcast of its rows, which takes half as long as a sum.
pipeline::PassTimes ModelCosts::joint_ends(const Slice& slice) const {
  const auto values = static_cast<double>(slice.sequences * slice.tokens * model_.hidden_size);
  const double broadcast = vocabulary_collective(values * element_) / 2 * milliseconds_;
  const pipeline::PassTimes first = embedding(slice), last = head(slice);
  return {
      .embedding = first.forward, .head = last.backward + broadcast, .embedding_backward = first.backward + broadcast};
}

double ModelCosts::gather_after_message(const Slice& slice) const {
  if (settings_.sequence_parallel) return 0;
  return all_gather_seconds(cluster_, tensor_group_, stream_elements(slice) * element_) * milliseconds_;
}

double ModelCosts::update_seconds(double parameters) const {
  return kernels(parameters * constants_.update_bytes / bandwidth_, 2);
}

double ModelCosts::orthogonalize_seconds(double rows, double columns) const {
  const double n = std::min(rows, columns), m = std::max(rows, columns);
  const double products = 2 * product(n, m, n) + product(n, n, n);
  const double sums = kernels(passes(n * n + n * m, 3), 2);
  return kNewtonSchulzIterations * (products + sums);
}

double ModelCosts::recomputed_operations(const Slice& slice, Recompute recompute) const {
  if (recompute == Recompute::kNone) return 0;
  const double attention = attention_operations(slice);
  if (recompute == Recompute::kSelective) return attention;
  // Nothing needs the MLP's second product.
  const double products = work_.product_operations() + work_.adapter_operations() -
                          (constants_.recomputes_all != 0 ? 0 : work_.products.back().operations());
  return static_cast<double>(slice.sequences * slice.tokens) * products + attention;
}

double ModelCosts::layer_operations(const Slice& slice) const {
  const auto rows = static_cast<double>(slice.sequences * slice.tokens);
  return rows * work_.training_operations(static_cast<double>(slice.tokens), static_cast<double>(slice.context));
}

double ModelCosts::head_operations(const Slice& slice) const {
  const auto rows = static_cast<double>(slice.sequences * slice.tokens);
  const double of_token = model_.family().head_operations(model_, static_cast<double>(slice.tokens + slice.context));
  const double times = model_.adapters.active() ? 2 : 3;  // a frozen head has no weight gradient
  return times * rows * of_token / static_cast<double>(settings_.tensor);
}

}  // namespace teratron::plan
