// A model's parameters and AdamW's moments in the memory of the reference back end, filled with random finite bits.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "model/make_model.h"
#include "ops/backend.h"

namespace teratron::testing {

inline ModelConfig small_config() {
  return {.num_layers = 2,
          .hidden_size = 12,
          .num_attention_heads = 3,
          .vocab_size = 29,
          .max_position_embeddings = 7,
          .make_vocab_size_divisible_by = 8};
}

class RandomModel {
 public:
  explicit RandomModel(const ModelConfig& model_config, DType dtype = DType::kF32)
      : config(model_config), backend(make_reference_backend(dtype)), model(make_model(config)) {
    model->visit([&](Parameter& parameter) {
      parameter.state.slots = {{.name = "moment1", .dtype = dtype}, {.name = "moment2", .dtype = dtype}};
      for (TensorRef* view : {&parameter.value, &parameter.state.slots[0].values, &parameter.state.slots[1].values}) {
        tensors_.emplace_back(*backend, dtype, parameter.shape);
        *view = tensors_.back();
      }
      parameters.push_back(&parameter);
    });
    fill(0);
  }

  // Any bits of finite values, subnormals too, in every floating type. Padding rows get them as well.
  void fill(std::uint64_t seed) {
    RandomSequence random({.seed = seed});
    for (const Tensor& tensor : tensors_) {
      std::vector<std::uint32_t> words(static_cast<std::size_t>(tensor.ref().bytes()) / 4);
      // Without the exponent's second bit no value of 16 or 32 bits is infinite or not a number.
      for (std::uint32_t& word : words) word = random.next_u32() & 0xdfffdfffU;
      backend->upload(tensor, words.data());
    }
  }

  // The bytes of every tensor, those of the padding rows apart.
  std::map<std::string, std::string> bytes() const { return part(false); }
  std::map<std::string, std::string> padding() const { return part(true); }

  const ModelConfig config;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::vector<Parameter*> parameters;

 private:
  std::map<std::string, std::string> part(bool padding) const {
    std::map<std::string, std::string> all;
    for (const Parameter* parameter : parameters) {
      const std::int64_t rows = parameter->shape[0], stored = rows - parameter->padding_rows;
      const auto add = [&](const std::string& suffix, const TensorRef& view) {
        const TensorRef rows_of_it = padding ? view.slice(0, stored, rows) : view.slice(0, 0, stored);
        std::string& to = all[parameter->name + suffix];
        to.resize(static_cast<std::size_t>(rows_of_it.bytes()));
        if (!to.empty()) backend->download(to.data(), rows_of_it);
      };
      add("", parameter->value);
      for (const OptimizerSlot& slot : parameter->state.slots) add("." + slot.name, slot.values);
    }
    return all;
  }

  std::vector<Tensor> tensors_;
};

inline TrainingState some_state(std::int64_t iteration) {
  return {.iteration = iteration,
          .consumed_samples = 8 * iteration,
          .consumed_tokens = 8192 * iteration,
          .seed = 0xfedcba9876543210,
          .learning_rate = 0.1 / 3.0,
          .counters = {{"skipped", -1}, {"epochs", 3}},
          .values = {{"best_loss", std::numeric_limits<double>::infinity()}, {"loss_scale", 65536.0}}};
}

}  // namespace teratron::testing
