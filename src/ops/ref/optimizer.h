// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) and the gradient norm.
#pragma once

#include <cmath>

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

template <class C>
void adamw(const AdamW& args) {
  using A = Accumulator<C>;
  for (const AdamWParameter& of : args.parameters) {
    const Elements<A> value(of.value), gradient(of.gradient), moment1(of.moment1), moment2(of.moment2);
    const Elements<C> working(of.working);
    for (std::int64_t e = 0; e < of.value.elements(); ++e) {
      const double g = args.gradient_scale * gradient(e);
      const double m = args.beta1 * moment1(e) + (1 - args.beta1) * g;
      const double v = args.beta2 * moment2(e) + (1 - args.beta2) * g * g;
      const double step = (m / args.correction1) / (std::sqrt(v / args.correction2) + args.epsilon);
      const double decayed = value(e) * (1 - args.learning_rate * of.weight_decay);
      value(e) = static_cast<A>(decayed - args.learning_rate * step);
      moment1(e) = static_cast<A>(m);
      moment2(e) = static_cast<A>(v);
      if (of.working) working(e) = static_cast<C>(value(e));
    }
  }
}

template <class T>
double sum_of_squares(const TensorRef& view) {
  const Elements<T> x(view);
  double sum = 0;
  for (std::int64_t e = 0; e < view.elements(); ++e) sum += double{x(e)} * double{x(e)};
  return sum;
}

}  // namespace teratron::reference
