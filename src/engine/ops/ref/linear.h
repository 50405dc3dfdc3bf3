// Linear layers with bias and activation. T rows, I inputs, O outputs; C the compute type.
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/ref/activation.h"
#include "ops/ref/elements.h"
#include "tensor/weight_tiles.h"

namespace teratron::reference {

// y and activated from product(row, output).
template <class C, class Product>
void finish_forward(const LinearForward& args, const Product& product) {
  const std::int64_t rows = args.x.dim(0), outputs = args.y.dim(1);
  const Elements<C> y(args.y), bias(args.bias), activated(args.activated), gate(args.gate);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      y(t, o) = static_cast<C>(product(t, o) + (args.bias ? double{bias(o)} : 0));
      if (args.gate) {
        activated(t, o) = static_cast<C>(activate(args.activation, double{gate(t, o)}) * y(t, o));
      } else if (args.activation != Activation::kNone) {
        activated(t, o) = static_cast<C>(activate(args.activation, double{y(t, o)}));
      }
    }
  }
}

template <class C>
void linear_forward(const LinearForward& args) {
  const Elements<C> x(args.x), weight(args.weight);
  finish_forward<C>(args, [&](std::int64_t t, std::int64_t o) {
    double sum = 0;
    for (std::int64_t i = 0; i < args.x.dim(1); ++i) sum += double{x(t, i)} * weight(o, i);
    return sum;
  });
}

template <class C>
void tile_linear_forward(const TileLinearForward& args) {
  const Elements<C> x(args.linear.x);
  const std::int64_t blocks = args.linear.x.dim(1) / kTileColumns;
  visit_tiles(args.linear.weight.dtype, [&]<class Tile>(Tile) {
    const Elements<Tile> weight(args.linear.weight);
    finish_forward<C>(args.linear, [&](std::int64_t t, std::int64_t o) {
      double sum = 0;
      for (std::int64_t b = 0; b < blocks; ++b) {
        std::array<float, kTileColumns> values;
        for (std::int64_t i = 0; i < kTileColumns; ++i) {
          values[static_cast<std::size_t>(i)] = static_cast<float>(x(t, b * kTileColumns + i));
        }
        const WholeNumbers input = whole_numbers_of(values);
        const Tile& tile = weight(o / kTileRows, b);
        const std::int64_t row = o % kTileRows;
        int products = 0;
        for (std::int64_t i = 0; i < kTileColumns; ++i) {
          products += whole_number_in(tile, row, i) * input.values[static_cast<std::size_t>(i)];
        }
        sum += double{f16_to_float(tile.steps[static_cast<std::size_t>(row)])} * input.step * products;
      }
      return sum;
    });
  });
}

// Values of a weight of C, or of tiles rounded to C: [outputs, inputs].
template <class C>
std::vector<double> frozen_weights(const TensorRef& weight, std::int64_t outputs, std::int64_t inputs) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(outputs * inputs));
  const auto read = [&](const auto& value) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) values.push_back(double{value(o, i)});
    }
  };
  if (is_tiles(weight.dtype)) {
    visit_tiles(weight.dtype, [&]<class Tile>(Tile) {
      const Elements<Tile> tiles(weight);
      read([&](std::int64_t o, std::int64_t i) {
        return static_cast<C>(value_in(tiles(o / kTileRows, i / kTileColumns), o % kTileRows, i % kTileColumns));
      });
    });
  } else {
    read(Elements<C>(weight));
  }
  return values;
}

template <class C>
void frozen_linear_forward(const FrozenLinearForward& args) {
  const Elements<C> x(args.linear.x);
  const std::int64_t inputs = args.linear.x.dim(1);
  const std::vector<double> frozen = frozen_weights<C>(args.linear.weight, args.linear.y.dim(1), inputs);
  finish_forward<C>(args.linear, [&](std::int64_t t, std::int64_t o) {
    const double* const frozen_row = frozen.data() + o * inputs;
    double sum = 0;
    for (std::int64_t i = 0; i < inputs; ++i) sum += double{x(t, i)} * frozen_row[i];
    for (const LowRankProduct& low : args.added) {
      const std::int64_t own = o - low.first_output;
      if (!low.rows || own < 0 || own >= low.weight.dim(0)) continue;
      const Elements<C> rows(low.rows), weight(low.weight);
      for (std::int64_t r = 0; r < low.rows.dim(1); ++r) sum += double{rows(t, r)} * weight(own, r);
    }
    return sum;
  });
}

// dx, dgate and activated from product(row, input).
template <class C, class Product>
void finish_input_gradient(const LinearInputGradient& args, const Product& product) {
  const std::int64_t rows = args.dy.dim(0), inputs = args.dx.dim(1);
  const Elements<C> dx(args.dx);
  const Elements<C> pre_activation(args.pre_activation), activated(args.activated), gate(args.gate), dgate(args.dgate);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      double sum = product(t, i);
      // Read first: outputs may be the same memory.
      const double u = args.pre_activation ? double{pre_activation(t, i)} : 0, g = args.gate ? double{gate(t, i)} : 0;
      if (args.gate) {
        const double open = activate(args.activation, g);
        dgate(t, i) = static_cast<C>(sum * u * activation_derivative(args.activation, g));
        if (args.activated) activated(t, i) = static_cast<C>(open * u);
        sum *= open;
      } else if (args.activation != Activation::kNone) {
        if (args.activated) activated(t, i) = static_cast<C>(activate(args.activation, u));
        sum *= activation_derivative(args.activation, u);
      }
      dx(t, i) = static_cast<C>(sum);
    }
  }
}

template <class C>
void linear_input_gradient(const LinearInputGradient& args) {
  const Elements<C> dy(args.dy), weight(args.weight);
  finish_input_gradient<C>(args, [&](std::int64_t t, std::int64_t i) {
    double sum = 0;
    for (std::int64_t o = 0; o < args.dy.dim(1); ++o) sum += double{dy(t, o)} * weight(o, i);
    return sum;
  });
}

template <class C>
void frozen_linear_input_gradient(const FrozenLinearInputGradient& args) {
  const Elements<C> dy(args.linear.dy);
  const std::int64_t outputs = args.linear.dy.dim(1), inputs = args.linear.dx.dim(1);
  const std::vector<double> frozen = frozen_weights<C>(args.linear.weight, outputs, inputs);
  finish_input_gradient<C>(args.linear, [&](std::int64_t t, std::int64_t i) {
    double sum = 0;
    for (std::int64_t o = 0; o < outputs; ++o)
      sum += double{dy(t, o)} * frozen[static_cast<std::size_t>(o * inputs + i)];
    for (const LowRankProduct& low : args.added) {
      if (!low.rows) continue;
      const Elements<C> rows(low.rows), weight(low.weight);
      for (std::int64_t r = 0; r < low.rows.dim(1); ++r) sum += double{rows(t, r)} * weight(r, i);
    }
    return sum;
  });
}

template <class C>
void linear_weight_gradient(const LinearWeightGradient& args) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.dy.dim(1);
  const Elements<Accumulator<C>> dweight(args.dweight), dbias(args.dbias);
  const Elements<C> dy(args.dy), x(args.x);
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      double sum = 0;
      for (std::int64_t t = 0; t < rows; ++t) sum += double{dy(t, o)} * x(t, i);
      store(dweight(o, i), sum, args.accumulate);
    }
    if (!args.dbias) continue;
    double sum = 0;
    for (std::int64_t t = 0; t < rows; ++t) sum += dy(t, o);
    store(dbias(o), sum, args.accumulate);
  }
}

}  // namespace teratron::reference
