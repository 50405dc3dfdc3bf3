// Linear layer y = x W^T + b, and its mirror.
#pragma once

#include <string>

#include "nn/parameter.h"
#include "nn/step.h"

namespace teratron {

struct Linear {
  Parameter weight;  // [outputs, inputs]
  Parameter bias;    // [outputs]

  // `hugging_face` is the prefix of the pair's names there.
  Linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, double init_scale,
         const std::string& hugging_face)
      : weight{.name = name + ".weight",
               .shape = {outputs, inputs},
               .init = Init::kNormal,
               .init_scale = init_scale,
               .decay = true,
               .hugging_face = hugging_face + ".weight",
               .hugging_face_transposed = true},
        bias{.name = name + ".bias", .shape = {outputs}, .hugging_face = hugging_face + ".bias"} {}

  void visit(const ParameterVisitor& visitor) {
    visitor(weight);
    visitor(bias);
  }

  // y[T, outputs] from x[T, inputs]
  void forward(const Step& step, TensorRef y, TensorRef x) const {
    step.backend.linear_forward({.y = y, .x = x, .weight = weight.value, .bias = bias.value});
  }

  // dx[T, inputs] from dy[T, outputs]
  void backward_input(const Step& step, TensorRef dx, TensorRef dy) const {
    step.backend.linear_input_gradient({.dx = dx, .dy = dy, .weight = weight.value});
  }

  void backward_weight(const Step& step, TensorRef dy, TensorRef x) const {
    step.backend.linear_weight_gradient(
        {.dweight = weight.gradient, .dy = dy, .x = x, .dbias = bias.gradient, .accumulate = step.accumulate});
  }
};

}  // namespace teratron
