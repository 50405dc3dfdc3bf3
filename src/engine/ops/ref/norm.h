// Layer norm (Ba, Kiros and Hinton, arXiv 1607.06450) and RMS norm (Zhang and Sennrich, arXiv 1910.07467), over the
// last axis. RMS norm is layer norm with a mean and a beta of 0.
#pragma once

#include <cmath>

#include "ops/backend.h"
#include "ops/ref/dropout.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

// The stored mean of a row; 0 in RMS norm.
template <class C, class Arguments>
double mean_of(const Arguments& args, std::int64_t row) {
  return args.is_rms() ? 0 : double{Elements<Accumulator<C>>(args.mean)(row)};
}

// y = (x - mean) * rstd * gamma + beta, with the mean and rstd as stored.
template <class C>
void norm_apply(const NormForward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const Elements<C> y(args.y), x(args.x), gamma(args.gamma), beta(args.beta);
  const Elements<Accumulator<C>> rstd(args.rstd);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < hidden; ++j) {
      const double normalised = (double{x(r, j)} - mean_of<C>(args, r)) * rstd(r);
      y(r, j) = static_cast<C>(normalised * gamma(j) + (args.is_rms() ? 0 : double{beta(j)}));
    }
  }
}

template <class C>
void norm_forward(const NormForward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const auto size = static_cast<double>(hidden);
  const Elements<Accumulator<C>> mean(args.mean), rstd(args.rstd);
  const Elements<C> x(args.x);
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t j = 0; j < hidden; ++j) sum += double{x(r, j)};
    const double centre = args.is_rms() ? 0 : sum / size;
    double squares = 0;
    for (std::int64_t j = 0; j < hidden; ++j) squares += (double{x(r, j)} - centre) * (double{x(r, j)} - centre);
    if (!args.is_rms()) mean(r) = static_cast<Accumulator<C>>(centre);
    rstd(r) = static_cast<Accumulator<C>>(1 / std::sqrt(squares / size + args.epsilon));
  }
  norm_apply<C>(args);
}

template <class C>
void residual_add_norm(const ResidualAddNorm& args) {
  residual_add<C>(args.add);
  norm_forward<C>(args.norm);
}

// With n = (x - mean) * rstd and g = dy * gamma: dx = rstd * (g - mean(g) - n * mean(g * n)), means over the row. RMS
// norm subtracted no mean, so it lacks mean(g).
template <class C>
void norm_input_gradient(const NormBackward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const auto size = static_cast<double>(hidden);
  const Elements<C> dx(args.dx), dy(args.dy), x(args.x), gamma(args.gamma);
  const Elements<Accumulator<C>> rstd(args.rstd);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto normalised = [&](std::int64_t j) { return (double{x(r, j)} - mean_of<C>(args, r)) * rstd(r); };
    const auto g = [&](std::int64_t j) { return double{dy(r, j)} * gamma(j); };
    double mean_g = 0, mean_gn = 0;
    for (std::int64_t j = 0; j < hidden; ++j) {
      if (!args.is_rms()) mean_g += g(j) / size;
      mean_gn += g(j) * normalised(j) / size;
    }
    for (std::int64_t j = 0; j < hidden; ++j) {
      store(dx(r, j), rstd(r) * (g(j) - mean_g - normalised(j) * mean_gn), args.accumulate_dx);
    }
  }
}

template <class C>
void norm_backward(const NormBackward& args) {
  norm_input_gradient<C>(args);
  if (!args.dgamma) return;
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const Elements<C> dy(args.dy), x(args.x);
  const Elements<Accumulator<C>> dgamma(args.dgamma), dbeta(args.dbeta), rstd(args.rstd);
  for (std::int64_t j = 0; j < hidden; ++j) {
    double gamma_sum = 0, beta_sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      gamma_sum += dy(r, j) * (double{x(r, j)} - mean_of<C>(args, r)) * rstd(r);
      beta_sum += double{dy(r, j)};
    }
    store(dgamma(j), gamma_sum, args.accumulate);
    if (!args.is_rms()) store(dbeta(j), beta_sum, args.accumulate);
  }
}

template <class C>
void residual_add_norm_backward(const ResidualAddNormBackward& args) {
  norm_backward<C>(args.norm);
  dropout_backward<C>(args.add);
}

}  // namespace teratron::reference
