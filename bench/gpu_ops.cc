// By operation, at the sizes of GPT-2 models: milliseconds, the rate, and the share of the device's own limit, which is
// the time of the FLOPs at the rate of a large square product, or of the bytes at the rate of a large copy, whichever
// is longer. Both limits are measured first. Times are the device's, of many calls in a row, medians of several rounds.
//
//   bench_gpu_ops [cpu|cuda|hopper|cudnn] [MODEL]... [only TEXT]
//
// All models if none is named; `tiny` is for tests of this program. hopper and cudnn are cuda with these kernels of
// attention. `only`: operations whose names have TEXT.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device_timer.h"
#include "ops/backend.h"
#include "program.h"

namespace teratron {
namespace {

constexpr int kSquaredTogether = 32;  // gradients, since a call waits for the device once

struct Model {
  std::string_view name;
  std::int64_t hidden, heads, vocab, batch, tokens;  // a micro-batch of `batch` sequences
  std::int64_t rows() const { return batch * tokens; }
};

// 1.2B and 8.3B are Megatron-LM's (its Table 1), of which one layer is timed as one device would hold it.
constexpr Model kModels[] = {{"124M", 768, 12, 50304, 8, 1024},
                             {"355M", 1024, 16, 50304, 8, 1024},
                             {"774M", 1280, 20, 50304, 8, 1024},
                             {"1.2B", 1536, 16, 51200, 8, 1024},
                             {"8.3B", 3072, 32, 51200, 8, 1024}};
constexpr Model kTiny = {"tiny", 64, 2, 320, 2, 32};

// The operations of one layer and of the head, on memory that all share.
class Layer {
 public:
  Layer(Backend& backend, const Model& model)
      : backend_(backend),
        m_(model),
        chunk_(std::min<std::int64_t>(model.rows(), 4096)),
        wide_(backend, backend.compute_dtype(), {model.rows(), 4 * model.hidden}),
        other_(backend, backend.compute_dtype(), {model.rows(), 4 * model.hidden}),
        x_(backend, backend.compute_dtype(), {model.rows(), model.hidden}),
        y_(backend, backend.compute_dtype(), {model.rows(), model.hidden}),
        z_(backend, backend.compute_dtype(), {model.rows(), model.hidden}),
        logits_(backend, backend.compute_dtype(), {chunk_, model.vocab}),
        weights_(backend, backend.compute_dtype(), {model.vocab, model.hidden}),
        gradients_(backend, backend.accumulation_dtype(), {model.vocab, model.hidden}),
        states_(backend, backend.accumulation_dtype(), {3, 4 * model.hidden * model.hidden}),
        statistics_(backend, backend.accumulation_dtype(), {4, std::max(model.rows() * model.heads, chunk_)}),
        vectors_(backend, backend.compute_dtype(), {2, 4 * model.hidden}),
        vector_gradients_(backend, backend.accumulation_dtype(), {2, 4 * model.hidden}),
        ids_(backend, DType::kI32, {model.rows()}) {
    for (const TensorRef& view : {wide_.ref(), other_.ref(), x_.ref(), y_.ref(), weights_.ref()}) {
      backend.fill_normal(view, RandomStream(), 0, 0.02);
    }
    backend.fill(vectors_, 1);
    backend.fill_zero(gradients_);
    backend.fill_zero(states_);
    backend.fill(statistics_, 1);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < model.rows(); ++i) ids.push_back(static_cast<std::int32_t>(i * 7919 % model.vocab));
    backend.upload(ids_, ids.data());
  }

  std::vector<Work> works() {
    std::vector<Work> works;
    const std::int64_t h = m_.hidden, rows = m_.rows();
    for (const auto& [name, outputs, inputs] :
         {Product{"q, k, v", 3 * h, h}, {"projection", h, h}, {"h to 4h", 4 * h, h}, {"4h to h", h, 4 * h}}) {
      add_linear(works, name, rows, outputs, inputs);
    }
    add_linear(works, "logits", chunk_, m_.vocab, h);
    add_attention(works);
    add_norms(works);
    add_head(works);
    add_updates(works);
    return works;
  }

 private:
  struct Product {
    std::string_view name;
    std::int64_t outputs, inputs;
  };

  double bytes_of(std::initializer_list<TensorRef> views) const {
    double bytes = 0;
    for (const TensorRef& view : views) bytes += static_cast<double>(view.bytes());
    return bytes;
  }
  TensorRef part(const Tensor& of, std::int64_t rows, std::int64_t columns) const {
    return of.ref().reshape({of.ref().elements()}).slice(0, 0, rows * columns).reshape({rows, columns});
  }
  TensorRef statistics(std::int64_t which, std::int64_t count) const {
    return statistics_.ref().select(0, which).slice(0, 0, count);
  }

  void add_linear(std::vector<Work>& works, std::string_view name, std::int64_t rows, std::int64_t outputs,
                  std::int64_t inputs) {
    const bool head = outputs == m_.vocab;
    const TensorRef x = part(inputs == m_.hidden ? x_ : wide_, rows, inputs);
    const TensorRef y = head ? logits_.ref() : part(other_, rows, outputs), weight = part(weights_, outputs, inputs);
    const TensorRef dweight = part(gradients_, outputs, inputs);
    const TensorRef dx = part(inputs == m_.hidden ? z_ : wide_, rows, inputs);
    const TensorRef bias = head ? TensorRef() : vectors_.ref().select(0, 0).slice(0, 0, outputs);
    const TensorRef dbias = head ? TensorRef() : vector_gradients_.ref().select(0, 0).slice(0, 0, outputs);
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(outputs) * static_cast<double>(inputs);
    const bool gelu = outputs == 4 * m_.hidden && !head, into_gelu = inputs == 4 * m_.hidden;
    const TensorRef activated = part(wide_, rows, outputs == 4 * m_.hidden ? outputs : 1);
    works.push_back({fmt::format("{} forward{}", name, gelu ? ", GELU" : ""), flops,
                     bytes_of({x, y, weight}) + (gelu ? bytes_of({y}) : 0), [=, this] {
                       backend_.linear_forward({.y = y,
                                                .x = x,
                                                .weight = weight,
                                                .bias = bias,
                                                .activation = gelu ? Activation::kGeluTanh : Activation::kNone,
                                                .activated = gelu ? activated : TensorRef()});
                     }});
    const TensorRef dy = head ? logits_.ref() : into_gelu ? y_.ref() : y;
    LinearInputGradient input_gradient{.dx = dx, .dy = dy, .weight = weight};
    if (into_gelu) {
      input_gradient.activation = Activation::kGeluTanh;
      input_gradient.pre_activation = part(other_, rows, inputs);
    }
    const double moved = bytes_of({dx, dy, weight}) + (into_gelu ? bytes_of({dx}) : 0);
    works.push_back({fmt::format("{} input gradient{}", name, into_gelu ? ", GELU" : ""), flops, moved,
                     [=, this] { backend_.linear_input_gradient(input_gradient); }});
    if (into_gelu) {  // as where forward has not kept its result
      input_gradient.activated = input_gradient.pre_activation;
      works.push_back({fmt::format("{} input gradient, GELU made again", name), flops, moved + bytes_of({dx}),
                       [=, this] { backend_.linear_input_gradient(input_gradient); }});
    }
    works.push_back({fmt::format("{} weight gradient{}", name, head ? "" : ", bias"), flops,
                     bytes_of({x, dy}) + 2 * bytes_of({dweight}), [=, this] {
                       backend_.linear_weight_gradient(
                           {.dweight = dweight, .dy = dy, .x = x, .dbias = dbias, .accumulate = true});
                     }});
  }

  void add_attention(std::vector<Work>& works) {
    add_attention(works, "", {});
    add_attention(works, ", dropout", {.probability = 0.1, .sequence_length = m_.tokens, .heads = m_.heads});
  }
  void add_attention(std::vector<Work>& works, std::string_view which, const Dropout& dropout) {
    const std::int64_t size = m_.hidden / m_.heads;
    const TensorRef qkv = part(other_, m_.rows(), 3 * m_.hidden).reshape({m_.batch, m_.tokens, 3, m_.heads, size});
    const TensorRef dqkv = part(wide_, m_.rows(), 3 * m_.hidden).reshape({m_.batch, m_.tokens, 3, m_.heads, size});
    const Shape plain{m_.batch, m_.tokens, m_.heads, size};
    const AttentionForward forward{
        .out = x_.ref().reshape(plain),
        .log_sum_exp = statistics(0, m_.rows() * m_.heads).reshape({m_.batch, m_.heads, m_.tokens}),
        .q = qkv.select(2, 0),
        .k = qkv.select(2, 1),
        .v = qkv.select(2, 2),
        .scale = 1 / std::sqrt(static_cast<double>(size)),
        .dropout = dropout};
    // Causal: half of the pairs; two products forward, five backward.
    const double product = static_cast<double>(m_.rows()) * static_cast<double>(m_.tokens * m_.hidden);
    works.push_back({fmt::format("attention forward{}", which), 2 * product, bytes_of({qkv, x_}),
                     [=, this] { backend_.attention_forward(forward); }});
    const AttentionBackward backward{.dq = dqkv.select(2, 0),
                                     .dk = dqkv.select(2, 1),
                                     .dv = dqkv.select(2, 2),
                                     .dout = y_.ref().reshape(plain),
                                     .forward = forward};
    works.push_back({fmt::format("attention backward{}", which), 5 * product, 2 * bytes_of({qkv, x_}),
                     [=, this] { backend_.attention_backward(backward); }});
  }

  void add_norms(std::vector<Work>& works) {
    const TensorRef gamma = vectors_.ref().select(0, 0).slice(0, 0, m_.hidden);
    const TensorRef beta = vectors_.ref().select(0, 1).slice(0, 0, m_.hidden);
    const TensorRef mean = statistics(0, m_.rows()), rstd = statistics(1, m_.rows());
    const Shape stream{m_.batch, m_.tokens, m_.hidden};
    const Dropout dropout{.probability = 0.1, .sequence_length = m_.tokens};
    const ResidualAdd add{.sum = z_.ref().reshape(stream),
                          .residual = x_.ref().reshape(stream),
                          .branch = y_.ref().reshape(stream),
                          .dropout = dropout};
    const NormForward norm{.y = part(other_, m_.rows(), m_.hidden).reshape(stream),
                           .mean = mean,
                           .rstd = rstd,
                           .x = add.sum,
                           .gamma = gamma,
                           .beta = beta};
    works.push_back({"residual add, dropout, layer norm", 0, 4 * bytes_of({x_}), [=, this] {
                       backend_.residual_add_norm({add, norm});
                     }});
    const NormBackward backward{.dx = x_,
                                .dgamma = vector_gradients_.ref().select(0, 0).slice(0, 0, m_.hidden),
                                .dbeta = vector_gradients_.ref().select(0, 1).slice(0, 0, m_.hidden),
                                .dy = y_,
                                .x = z_,
                                .mean = mean,
                                .rstd = rstd,
                                .gamma = gamma,
                                .accumulate_dx = true,
                                .accumulate = true};
    works.push_back({"layer norm backward", 0, 4 * bytes_of({x_}), [=, this] { backend_.norm_backward(backward); }});
    const DropoutBackward add_backward{.dbranch = part(other_, m_.rows(), m_.hidden).reshape(stream),
                                       .dsum = x_.ref().reshape(stream),
                                       .dropout = dropout};
    works.push_back({"layer norm, dropout backward", 0, 5 * bytes_of({x_}), [=, this] {
                       backend_.residual_add_norm_backward({backward, add_backward});
                     }});
    works.push_back(
        {"dropout backward", 0, 2 * bytes_of({x_}), [=, this] { backend_.dropout_backward(add_backward); }});
  }

  void add_head(std::vector<Work>& works) {
    const TensorRef ids = ids_.ref().reshape({m_.batch, m_.tokens}), targets = ids_.ref().slice(0, 0, chunk_);
    const Shape stream{m_.batch, m_.tokens, m_.hidden};
    works.push_back({"embedding forward", 0, 2 * bytes_of({x_}), [=, this] {
                       backend_.embedding_forward({.y = x_.ref().reshape(stream), .ids = ids, .tokens = weights_});
                     }});
    works.push_back(
        {"embedding backward", 0, bytes_of({x_, gradients_}), [=, this] {
           backend_.embedding_backward(
               {.dtokens = gradients_, .dy = x_.ref().reshape(stream), .ids = ids, .accumulate_tokens = true});
         }});
    const CrossEntropyPartials partials{.max = statistics(0, chunk_),
                                        .sum = statistics(1, chunk_),
                                        .target_logit = statistics(2, chunk_),
                                        .logits = logits_,
                                        .targets = targets,
                                        .valid_columns = m_.vocab};
    works.push_back(
        {"cross-entropy partials", 0, bytes_of({logits_}), [=, this] { backend_.cross_entropy_partials(partials); }});
    const CrossEntropyBackward backward{.logits = logits_,
                                        .max = partials.max,
                                        .sum = partials.sum,
                                        .targets = targets,
                                        .weight = statistics(3, chunk_),
                                        .valid_columns = m_.vocab};
    works.push_back({"cross-entropy backward", 0, 2 * bytes_of({logits_}),
                     [=, this] { backend_.cross_entropy_backward(backward); }});
  }

  // Of one matrix [4h, h].
  void add_updates(std::vector<Work>& works) {
    const std::int64_t count = 4 * m_.hidden * m_.hidden;
    const TensorRef gradient = part(gradients_, 1, std::min(count, gradients_.ref().elements()))
                                   .reshape({std::min(count, gradients_.ref().elements())});
    const std::int64_t used = gradient.elements();
    const auto state = [&](std::int64_t which) { return states_.ref().select(0, which).slice(0, 0, used); };
    const bool mixed = backend_.compute_dtype() != backend_.accumulation_dtype();
    const TensorRef working = mixed ? part(weights_, 1, used).reshape({used}) : TensorRef();
    const bool is_split = backend_.compute_dtype() == DType::kBF16;  // masters lie in working and value, 2 bytes each
    const TensorRef value = is_split ? TensorRef(state(0).data, DType::kU16, {used}) : state(0);
    const AdamW adamw{
        .parameters =
            {{.value = value, .gradient = gradient, .moment1 = state(1), .moment2 = state(2), .working = working}},
        .learning_rate = 1e-4};
    works.push_back({"AdamW", 0, 7 * bytes_of({gradient}) + (mixed && !is_split ? bytes_of({working}) : 0),
                     [=, this] { backend_.adamw(adamw); }});
    const std::vector<TensorRef> gradients(kSquaredTogether, gradient);  // a step sums all of its own in one call
    works.push_back({fmt::format("sum of squares of {}", kSquaredTogether), 0, kSquaredTogether * bytes_of({gradient}),
                     [=, this] { backend_.sum_of_squares(gradients); }});
  }

  Backend& backend_;
  const Model m_;
  const std::int64_t chunk_;  // rows of logits at a time
  Tensor wide_, other_, x_, y_, z_, logits_, weights_, gradients_, states_, statistics_, vectors_, vector_gradients_,
      ids_;
};

std::string text_of(const std::optional<double>& value, double unit, int digits) {
  return value ? fmt::format("{:.{}f}", unit * *value, digits) : "?";
}

void print_model(Backend& backend, const Model& model, std::string_view only, const Timer& timer,
                 const Limits& limits) {
  fmt::print("\n{}: hidden {}, {} heads, {} x {} tokens, in {}\n\n", model.name, model.hidden, model.heads, model.batch,
             model.tokens, name_of(backend.compute_dtype()));
  fmt::print("| operation | ms | TFLOP/s | GB/s | of the limit |\n|---|---|---|---|---|\n");
  Layer layer(backend, model);
  for (const Work& work : layer.works()) {
    if (work.name.find(only) == std::string::npos) continue;
    if (const auto seconds = timer.seconds(work.call)) {
      const auto limit = limits.seconds_of(work);
      fmt::print("| {} | {:.4f} | {} | {:.0f} | {} % |\n", work.name, 1e3 * *seconds,
                 work.flops > 0 ? fmt::format("{:.1f}", 1e-12 * work.flops / *seconds) : "",
                 1e-9 * work.bytes / *seconds, text_of(limit, 100 / *seconds, 0));
    } else {
      fmt::print("| {} | less than the clock resolves | | | |\n", work.name);
    }
    std::fflush(stdout);  // a run that is stopped keeps its rows
  }
}

std::vector<Model> models_named(std::span<char* const> names) {
  std::vector<Model> models;
  for (const char* const name : names) {
    const auto* const found = std::ranges::find(kModels, std::string_view(name), &Model::name);
    if (found == std::end(kModels) && std::string_view(name) != kTiny.name) {
      throw_user_error("there is no model '{}'; there are 124M, 355M, 774M, 1.2B, 8.3B and tiny", name);
    }
    models.push_back(found == std::end(kModels) ? kTiny : *found);
  }
  return models.empty() ? std::vector<Model>(std::begin(kModels), std::end(kModels)) : models;
}

std::unique_ptr<Backend> backend_named(std::string_view name) {
  if (name == "cpu") return make_cpu_backend();
  if (name != "cuda" && name != "hopper" && name != "cudnn") {
    throw_user_error("'{}' is no back end; usage: bench_gpu_ops [cpu|cuda|hopper|cudnn] [MODEL]... [only TEXT]", name);
  }
  return make_cuda_backend({.compute_dtype = DType::kBF16,
                            .cudnn_attention = name == "cudnn" ? KernelUse::kWherePossible : KernelUse::kOff,
                            .hopper_attention = name == "hopper" ? KernelUse::kRequired : KernelUse::kOff});
}

int run(std::span<char*> arguments) {
  std::string_view only;
  if (arguments.size() > 2 && std::string_view(arguments[arguments.size() - 2]) == "only") {
    only = arguments.back();
    arguments = arguments.first(arguments.size() - 2);
  }
  const std::vector<Model> models = models_named(arguments.subspan(std::min<std::size_t>(arguments.size(), 2)));
  const auto backend = backend_named(arguments.size() < 2 ? "cuda" : arguments[1]);
  const Timer timer(*backend);
  const Limits limits = limits_of(*backend, timer, models.front().name == kTiny.name);
  fmt::print("{}: square products {} TFLOP/s, copies {} GB/s (read and written)\n",
             backend->processor().empty() ? "CPU" : backend->processor(), text_of(limits.flops, 1e-12, 1),
             text_of(limits.bytes, 1e-9, 0));
  for (const Model& model : models) print_model(*backend, model, only, timer, limits);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
