#include "model/gpt2.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "nn/parameter_state.h"

namespace teratron {
namespace {

ModelConfig checked(const ModelConfig& config, TensorPlace place) {
  const std::vector<std::string> faults = config.faults(place.size);
  if (!faults.empty()) throw UserError(fmt::format("{}", fmt::join(faults, "\n")));
  return config;
}

std::vector<TransformerLayer> make_layers(const ModelConfig& config, TensorPlace place) {
  std::vector<TransformerLayer> layers;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) layers.emplace_back(config, layer, place);
  return layers;
}

}  // namespace

Gpt2::Gpt2(const ModelConfig& model_config, TensorPlace place)
    : config(checked(model_config, place)),
      embedding(config.vocab_size, config.padded_vocab_size(place.size), config.max_position_embeddings,
                config.hidden_size, config.hidden_dropout, place),
      layers(make_layers(config, place)),
      final_norm("final_norm", config.hidden_size, config.layernorm_epsilon, "transformer.ln_f", place),
      head{.vocab_size = config.vocab_size, .vocab_begin = embedding.vocab_begin()} {}

void Gpt2::visit(const ParameterVisitor& visitor) {
  embedding.visit(visitor);
  for (TransformerLayer& layer : layers) layer.visit(visitor);
  final_norm.visit(visitor);
}

bool Gpt2Runner::is_here(const Parameter& parameter) const {
  const bool is_tied = &parameter == &model_.embedding.tokens;
  return parameter.stage == part_.stage() || (is_tied && part_.has_head());
}

std::vector<Parameter*> Gpt2Runner::parameters() {
  std::vector<Parameter*> here = all_parameters();
  std::erase_if(here, [&](const Parameter* parameter) { return !is_here(*parameter); });
  return here;
}

std::vector<Parameter*> Gpt2Runner::all_parameters() {
  std::vector<Parameter*> all;
  model_.visit([&](Parameter& parameter) { all.push_back(&parameter); });
  return all;
}

void Gpt2Runner::initialize(std::uint64_t seed) {
  std::uint32_t stream = 0;
  for (Parameter* parameter : all_parameters()) {
    const RandomStream random{.seed = seed, .purpose = RandomPurpose::kInit, .stream = stream++};
    if (!is_here(*parameter)) continue;
    store_weights(backend_, *parameter, [&](TensorRef whole) { initialize_weights(*parameter, whole, random); });
    if (options_.purpose == Purpose::kTraining) {
      backend_.fill_zero(parameter->state.moment1);
      backend_.fill_zero(parameter->state.moment2);
    }
  }
}

// Every value is that of the whole parameter at its place, wherever it lies.
void Gpt2Runner::initialize_weights(const Parameter& parameter, TensorRef whole, const RandomStream& random) {
  if (parameter.init == Init::kOne) return backend_.fill(whole, 1.0);
  backend_.fill_zero(whole);  // padding rows stay zero
  if (parameter.init == Init::kZero) return;
  const double stddev = model_.config.init_method_std * parameter.init_scale;
  const std::int64_t columns = parameter.global_shape()[1];
  for (const ParameterPiece& piece : pieces_of(parameter, parameter.place.rank)) {
    backend_.fill_normal(whole.slice(0, piece.local_row, piece.local_row + piece.rows), random,
                         piece.global_row * columns + piece.global_column, stddev, columns);
  }
}

}  // namespace teratron
