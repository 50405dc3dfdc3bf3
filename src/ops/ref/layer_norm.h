// Layer normalisation (Ba, Kiros and Hinton, arXiv 1607.06450) over the last axis.
#pragma once

#include <cmath>

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

// y = (x - mean) * rstd * gamma + beta, with the mean and rstd as stored.
template <class T>
void layer_norm_apply(const LayerNormForward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const Elements<T> y(args.y), mean(args.mean), rstd(args.rstd), x(args.x), gamma(args.gamma), beta(args.beta);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < hidden; ++j) {
      const double normalised = (double{x(r, j)} - mean(r)) * rstd(r);
      y(r, j) = static_cast<T>(normalised * gamma(j) + beta(j));
    }
  }
}

template <class T>
void layer_norm_forward(const LayerNormForward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const auto size = static_cast<double>(hidden);
  const Elements<T> mean(args.mean), rstd(args.rstd), x(args.x);
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t j = 0; j < hidden; ++j) sum += x(r, j);
    const double row_mean = sum / size;
    double squares = 0;
    for (std::int64_t j = 0; j < hidden; ++j) squares += (x(r, j) - row_mean) * (x(r, j) - row_mean);
    mean(r) = static_cast<T>(row_mean);
    rstd(r) = static_cast<T>(1 / std::sqrt(squares / size + args.epsilon));
  }
  layer_norm_apply<T>(args);
}

// With n = (x - mean) * rstd and g = dy * gamma: dx = rstd * (g - mean(g) - n * mean(g * n)), means over the row.
template <class T>
void layer_norm_input_gradient(const LayerNormBackward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const auto size = static_cast<double>(hidden);
  const Elements<T> dx(args.dx), dy(args.dy), x(args.x), mean(args.mean), rstd(args.rstd), gamma(args.gamma);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto normalised = [&](std::int64_t j) { return (double{x(r, j)} - mean(r)) * rstd(r); };
    const auto g = [&](std::int64_t j) { return double{dy(r, j)} * gamma(j); };
    double mean_g = 0, mean_gn = 0;
    for (std::int64_t j = 0; j < hidden; ++j) {
      mean_g += g(j) / size;
      mean_gn += g(j) * normalised(j) / size;
    }
    for (std::int64_t j = 0; j < hidden; ++j) {
      store(dx(r, j), rstd(r) * (g(j) - mean_g - normalised(j) * mean_gn), args.accumulate_dx);
    }
  }
}

template <class T>
void layer_norm_backward(const LayerNormBackward& args) {
  layer_norm_input_gradient<T>(args);
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const Elements<T> dgamma(args.dgamma), dbeta(args.dbeta), dy(args.dy), x(args.x), mean(args.mean), rstd(args.rstd);
  for (std::int64_t j = 0; j < hidden; ++j) {
    double gamma_sum = 0, beta_sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      gamma_sum += dy(r, j) * (double{x(r, j)} - mean(r)) * rstd(r);
      beta_sum += dy(r, j);
    }
    store(dgamma(j), gamma_sum, args.accumulate);
    store(dbeta(j), beta_sum, args.accumulate);
  }
}

}  // namespace teratron::reference
