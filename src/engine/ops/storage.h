// Chooses a kernel by the type that memory holds: once per operation, together with the instruction set.
#pragma once

#include "base/float_types.h"

namespace teratron {

// choose(ElementType<T>()) for the types that tuned back ends store activations in.
template <class Choose>
auto choose_by_storage(DType dtype, const Choose& choose) {
  switch (dtype) {
    case DType::kF32: return choose(ElementType<float>());
    case DType::kBF16: return choose(ElementType<Bf16>());
    case DType::kF16: return choose(ElementType<F16>());
    default: throw InternalError(fmt::format("this back end has no {} kernels", name_of(dtype)));
  }
}

}  // namespace teratron
