// Passes over memory before and after the products of linear layers: biases, activations and gates, and their
// derivatives. A kernel takes chunks of kCount elements, whose number is a multiple of that.
#pragma once

#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/linear/activation.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

constexpr int kPassThreads = 256;

template <class T, Activation kActivation, int kCount>
__global__ void __launch_bounds__(kPassThreads) activate_all(T* activated, const T* values, std::int64_t count) {
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) * kCount; i < count;
       i += std::int64_t{gridDim.x} * kPassThreads * kCount) {
    const auto x = load_chunk<kCount>(values + i);
    float y[kCount];
    for (int e = 0; e < kCount; ++e) y[e] = activate<kActivation>(x[e]).value;
    store_chunk<kCount>(activated + i, y);
  }
}

// activated = activation(gate) * y.
template <class T, Activation kActivation, int kCount>
__global__ void __launch_bounds__(kPassThreads) open_gate(T* activated, const T* gate, const T* y, std::int64_t count) {
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) * kCount; i < count;
       i += std::int64_t{gridDim.x} * kPassThreads * kCount) {
    const auto opening = load_chunk<kCount>(gate + i), values = load_chunk<kCount>(y + i);
    float products[kCount];
    for (int e = 0; e < kCount; ++e) products[e] = activate<kActivation>(opening[e]).value * values[e];
    store_chunk<kCount>(activated + i, products);
  }
}

// y = sums + bias of the column.
template <class T>
__global__ void __launch_bounds__(kPassThreads)
    add_bias(T* y, const float* sums, const T* bias, std::int64_t count, std::int64_t columns) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kPassThreads) {
    y[i] = narrowed<T>(sums[i] + widened(bias[i % columns]));
  }
}

// dx = gradient * slope at u; activated = value at u, which may lie where u does, or be null. Gradients of T may lie
// where dx does.
template <class T, class From, Activation kActivation, int kCount>
__global__ void __launch_bounds__(kPassThreads)
    multiply_by_slope(T* dx, const From* gradient, const T* u, T* activated, std::int64_t count) {
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) * kCount; i < count;
       i += std::int64_t{gridDim.x} * kPassThreads * kCount) {
    const auto from = load_chunk<kCount>(gradient + i);
    const auto x = load_chunk<kCount>(u + i);
    float products[kCount], values[kCount];
    for (int e = 0; e < kCount; ++e) {
      const ValueAndSlope at = activate<kActivation>(x[e]);
      products[e] = from[e] * at.slope;
      values[e] = at.value;
    }
    store_chunk<kCount>(dx + i, products);
    if (activated != nullptr) store_chunk<kCount>(activated + i, values);
  }
}

// Memory of a gate's backward pass, for x = activation(gate) * u.
template <class T>
struct GateGradient {
  T *dx, *dgate;  // dgate may lie where the gate does
  const T *u, *gate;
  T* activated;  // x, may lie where u does, or be null
};

// dx = gradient * activation(gate), dgate = gradient * u * slope at the gate. Gradients of T may lie where dx does.
template <class T, class From, Activation kActivation, int kCount>
__global__ void __launch_bounds__(kPassThreads)
    differentiate_gate(GateGradient<T> of, const From* gradient, std::int64_t count) {
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) * kCount; i < count;
       i += std::int64_t{gridDim.x} * kPassThreads * kCount) {
    const auto from = load_chunk<kCount>(gradient + i);
    const auto values = load_chunk<kCount>(of.u + i), gate = load_chunk<kCount>(of.gate + i);
    float dx[kCount], dgate[kCount], products[kCount];
    for (int e = 0; e < kCount; ++e) {
      const ValueAndSlope open = activate<kActivation>(gate[e]);
      dx[e] = from[e] * open.value;
      dgate[e] = from[e] * values[e] * open.slope;
      products[e] = open.value * values[e];
    }
    store_chunk<kCount>(of.dx + i, dx);
    store_chunk<kCount>(of.dgate + i, dgate);
    if (of.activated != nullptr) store_chunk<kCount>(of.activated + i, products);
  }
}

// call(std::integral_constant) with the elements of 16 bytes of T if all views take such chunks, else with 1. Each of
// the views has `count` elements.
template <class T, class Call, class... Views>
void with_chunks(std::int64_t count, const Call& call, const Views*... views) {
  choose_chunk<T>(count % Vector<T>::kSize == 0 && (takes_vectors(views) && ...), call);
}

template <class T, Activation kActivation>
void activate_view(cudaStream_t stream, const TensorRef& activated, const TensorRef& values) {
  T* const to = activated.as<T>();
  const T* const from = values.as<T>();
  const std::int64_t count = values.elements();
  with_chunks<T>(
      count,
      [&](auto chunk) {
        launch(stream, shape_for(count / chunk, kPassThreads), activate_all<T, kActivation, chunk>, to, from, count);
      },
      to, from);
}

// call(std::integral_constant) with one that is not kNone.
template <class Call>
void with_activation(Activation activation, const Call& call) {
  if (activation == Activation::kGeluTanh) {
    call(std::integral_constant<Activation, Activation::kGeluTanh>());
  } else if (activation == Activation::kSilu) {
    call(std::integral_constant<Activation, Activation::kSilu>());
  } else {
    call(std::integral_constant<Activation, Activation::kGeluErf>());
  }
}

template <class T, Activation kActivation>
void open_gates(cudaStream_t stream, const LinearForward& args) {
  T* const to = args.activated.as<T>();
  const T *const gate = args.gate.as<T>(), *const y = args.y.as<T>();
  const std::int64_t count = args.y.elements();
  with_chunks<T>(
      count,
      [&](auto chunk) {
        launch(stream, shape_for(count / chunk, kPassThreads), open_gate<T, kActivation, chunk>, to, gate, y, count);
      },
      to, gate, y);
}

// Multiplies `gradient`, of dx's shape, by what the activation asks for.
template <class T, class From, Activation kActivation>
void differentiate_activation(cudaStream_t stream, const LinearInputGradient& args, const From* gradient) {
  const std::int64_t count = args.dx.elements();
  const GateGradient<T> of{.dx = args.dx.as<T>(),
                           .dgate = args.gate ? args.dgate.as<T>() : nullptr,
                           .u = args.pre_activation.as<T>(),
                           .gate = args.gate ? args.gate.as<T>() : nullptr,
                           .activated = args.activated ? args.activated.as<T>() : nullptr};
  with_chunks<T>(
      count,
      [&](auto chunk) {
        const LaunchShape shape = shape_for(count / chunk, kPassThreads);
        if (args.gate) {
          launch(stream, shape, differentiate_gate<T, From, kActivation, chunk>, of, gradient, count);
        } else {
          launch(stream, shape, multiply_by_slope<T, From, kActivation, chunk>, of.dx, gradient, of.u, of.activated,
                 count);
        }
      },
      of.dx, gradient, of.u, of.gate, of.dgate, of.activated);
}

}  // namespace teratron::cuda
