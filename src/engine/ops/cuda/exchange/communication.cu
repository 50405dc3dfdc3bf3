// Sums over ranks in the ranks' order, the same bits as on the host (comm/reduce.cc).
#include "ops/cuda/exchange/communication.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cuda/kernels/elements.h"

namespace teratron::cuda {
namespace {

constexpr int kThreads = 256;

struct Ends {
  void* outputs[CommunicationStream::kMostRanks];
  const void* inputs[CommunicationStream::kMostRanks];
  int output_count, input_count;
};

template <class T>
__device__ auto number(T value) {
  if constexpr (sizeof(T) == 2) {
    return widened(value);
  } else {
    return value;
  }
}

template <class T, class Number>
__device__ T stored(Number value) {
  if constexpr (sizeof(T) == 2) {
    return narrowed<T>(value);
  } else {
    return value;
  }
}

struct Sum {
  template <class Number>
  __device__ Number operator()(Number a, Number b) const {
    return a + b;
  }
};
struct Maximum {
  template <class Number>
  __device__ Number operator()(Number a, Number b) const {
    return a > b || a != a ? a : b;
  }
};

// kCount elements at a time, `count` times. Several ranks' are loaded before the first is added: theirs may be far
// away.
template <class T, int kCount, class Combine>
__global__ void __launch_bounds__(kThreads) reduce_ranks(Ends ends, std::int64_t first, std::int64_t count) {
  constexpr int kInFlight = 4;
  struct alignas(kCount * sizeof(T)) Piece {
    T values[kCount];
  };
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const auto place = [&](const void* memory) { return static_cast<const T*>(memory) + first + i * kCount; };
    const Piece own = *reinterpret_cast<const Piece*>(place(ends.inputs[0]));
    decltype(number(own.values[0])) sums[kCount];
    for (int e = 0; e < kCount; ++e) sums[e] = number(own.values[e]);
    for (int rank = 1; rank < ends.input_count; rank += kInFlight) {
      Piece pieces[kInFlight];
#pragma unroll
      for (int n = 0; n < kInFlight; ++n) {
        if (rank + n < ends.input_count) pieces[n] = *reinterpret_cast<const Piece*>(place(ends.inputs[rank + n]));
      }
#pragma unroll
      for (int n = 0; n < kInFlight; ++n) {
        if (rank + n >= ends.input_count) break;
        for (int e = 0; e < kCount; ++e) sums[e] = Combine()(sums[e], number(pieces[n].values[e]));
      }
    }
    Piece result;
    for (int e = 0; e < kCount; ++e) result.values[e] = stored<T>(sums[e]);
    for (int n = 0; n < ends.output_count; ++n) {
      *reinterpret_cast<Piece*>(const_cast<T*>(place(ends.outputs[n]))) = result;
    }
  }
}

bool is_aligned(const Ends& ends) {
  const auto fits = [](const void* memory) { return takes_vectors(static_cast<const std::byte*>(memory)); };
  return std::all_of(ends.inputs, ends.inputs + ends.input_count, fits) &&
         std::all_of(ends.outputs, ends.outputs + ends.output_count, fits);
}

template <class T, class Combine>
void reduce_as(cudaStream_t stream, const Ends& ends, std::int64_t count) {
  std::int64_t done = 0;
  if constexpr (std::is_same_v<Combine, Sum>) {  // what training asks for; maxima are of few values
    constexpr int kCount = 16 / static_cast<int>(sizeof(T));
    if (const std::int64_t pieces = count / kCount; pieces > 0 && is_aligned(ends)) {
      launch(stream, shape_for(pieces, kThreads), reduce_ranks<T, kCount, Combine>, ends, 0, pieces);
      done = pieces * kCount;
    }
  }
  if (done == count) return;
  launch(stream, shape_for(count - done, kThreads), reduce_ranks<T, 1, Combine>, ends, done, count - done);
}

template <class T>
void reduce_by(ReduceOp op, cudaStream_t stream, const Ends& ends, std::int64_t count) {
  op == ReduceOp::kSum ? reduce_as<T, Sum>(stream, ends, count) : reduce_as<T, Maximum>(stream, ends, count);
}

class GpuEvent final : public CommunicationStream::Event {
 public:
  GpuEvent(cudaStream_t stream, int device) : device_(device) {
    require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
    require(cudaEventRecord(event_, stream), "recording an event");
  }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  ~GpuEvent() override { cudaEventDestroy(event_); }

  int device() const { return device_; }
  void hold_back(cudaStream_t stream) const { require(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event"); }

 private:
  cudaEvent_t event_ = nullptr;
  const int device_;
};

// Counts the memory that NCCL takes of the device: for the group, and for its links, with the first exchange.
class MeteredChannel final : public CommunicationStream::Channel {
 public:
  MeteredChannel(NcclChannels& channels, cudaStream_t stream, const std::string& id, int rank, int size,
                 MemoryMeter* meter)
      : meter_(meter) {
    metered([&] { channel_ = channels.open(stream, id, rank, size); });
  }
  void exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    if (is_connected_) return channel_->exchange(sends, receives);
    metered([&] { channel_->exchange(sends, receives); });
    is_connected_ = true;
  }

 private:
  template <class Work>
  void metered(const Work& work) {
    const std::int64_t before = free_memory();
    work();
    meter_->add(std::max<std::int64_t>(0, before - free_memory()));
  }

  std::unique_ptr<Channel> channel_;
  MemoryMeter* const meter_;
  bool is_connected_ = false;
};

const GpuEvent& gpu_event(const CommunicationStream::EventPtr& event) { return static_cast<const GpuEvent&>(*event); }

}  // namespace

bool devices_reach_each_other() {
  static const bool all_do = [] {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "counting devices");
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        int can = 1;
        if (from != to) require(cudaDeviceCanAccessPeer(&can, from, to), "asking which devices it reaches");
        if (can == 0) return false;
      }
    }
    return true;
  }();
  return all_do;
}

CommunicationStream::EventPtr GpuCommunicationStream::record_compute() {
  return std::make_shared<GpuEvent>(compute_, device_);
}

CommunicationStream::EventPtr GpuCommunicationStream::record() { return std::make_shared<GpuEvent>(stream_, device_); }

void GpuCommunicationStream::wait_for(const EventPtr& event) {
  if (!event) return;
  reach(gpu_event(event).device());
  gpu_event(event).hold_back(stream_);
}

void GpuCommunicationStream::compute_waits_for(const EventPtr& event) {
  if (event) gpu_event(event).hold_back(compute_);
}

std::unique_ptr<CommunicationStream::Channel> GpuCommunicationStream::open_channel(const std::string& id, int rank,
                                                                                   int size) {
  check(channels_ != nullptr, "a back end without channels opens none");
  return std::make_unique<MeteredChannel>(*channels_, stream_, id, rank, size, meter_);
}

void GpuCommunicationStream::reach(int device) {
  if (device == device_ || !reached_.insert(device).second) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(device, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {  // by another rank of this device
    cudaGetLastError();
    return;
  }
  require(status, "reaching another device's memory");
}

void GpuCommunicationStream::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to == from) return;
  require(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_), "a copy");
}

void GpuCommunicationStream::reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                                    std::span<const std::byte* const> inputs, std::int64_t count) {
  check(inputs.size() <= std::size_t{kMostRanks} && outputs.size() <= std::size_t{kMostRanks}, "ranks of a reduction");
  Ends ends = {};
  std::copy(outputs.begin(), outputs.end(), ends.outputs);
  std::copy(inputs.begin(), inputs.end(), ends.inputs);
  ends.output_count = static_cast<int>(outputs.size());
  ends.input_count = static_cast<int>(inputs.size());
  switch (dtype) {
    case DType::kF64: return reduce_by<double>(op, stream_, ends, count);
    case DType::kF32: return reduce_by<float>(op, stream_, ends, count);
    case DType::kBF16: return reduce_by<Bf16>(op, stream_, ends, count);
    case DType::kF16: return reduce_by<F16>(op, stream_, ends, count);
    case DType::kI64: return reduce_by<std::int64_t>(op, stream_, ends, count);
    case DType::kI32: return reduce_by<std::int32_t>(op, stream_, ends, count);
    default: throw InternalError("only numbers are reduced");
  }
}

}  // namespace teratron::cuda
