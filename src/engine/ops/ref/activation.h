// GELU (Hendrycks and Gimpel, arXiv 1606.08415), x * P(N(0,1) <= x), exact and in its tanh approximation; SiLU (in the
// same paper), x / (1 + e^-x); tanh; and ReLU, max(x, 0), whose slope at 0 is 0.
#pragma once

#include <cmath>
#include <numbers>

#include "ops/backend.h"

namespace teratron::reference {

constexpr double kGeluCubic = 0.044715;
constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)

inline double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
    case Activation::kGeluErf: return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kRelu: return x < 0 ? 0 : x;
  }
  return x;
}

inline double activation_derivative(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone: return 1;
    case Activation::kGeluTanh: {
      const double tanh = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
      const double inner_derivative = kGeluScale * (1 + 3 * kGeluCubic * x * x);
      return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner_derivative;
    }
    case Activation::kGeluErf: {
      const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
    }
    case Activation::kSilu: {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
    case Activation::kTanh: return 1 - std::tanh(x) * std::tanh(x);
    case Activation::kRelu: return x > 0 ? 1 : 0;
  }
  return 1;
}

template <class C>
void activation_forward(const ActivationForward& args) {
  for (std::int64_t e = 0; e < args.x.elements(); ++e) {
    args.y.as<C>()[e] = static_cast<C>(activate(args.activation, double{args.x.as<C>()[e]}));
  }
}

template <class C>
void activation_backward(const ActivationBackward& args) {
  for (std::int64_t e = 0; e < args.x.elements(); ++e) {
    const double slope = activation_derivative(args.activation, double{args.x.as<C>()[e]});
    args.dx.as<C>()[e] = static_cast<C>(double{args.dy.as<C>()[e]} * slope);
  }
}

}  // namespace teratron::reference
