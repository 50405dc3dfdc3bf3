#include "profile/transfer_time.h"

#include <algorithm>
#include <chrono>

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRoundTrips = 15;

// Milliseconds of one way, in the middle of several; 0 on ranks of other stages than `stage` and the one after it.
double one_way(Mesh& mesh, Backend& backend, const TensorRef& view, int stage) {
  Communicator& stages = *mesh.pipeline;
  const bool is_first = stages.rank() == stage, is_second = stages.rank() == stage + 1;
  mesh.model->barrier();
  if (!is_first && !is_second) return 0;
  const int other = is_first ? stage + 1 : stage;
  std::vector<double> times;
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    const Clock::time_point start = Clock::now();
    // There as activations go, and back as gradients do.
    (is_first ? stages.start_send(view, other) : stages.start_receive(view, other)).wait();
    Communicator& back = *mesh.pipeline_back;
    (is_first ? back.start_receive(view, other) : back.start_send(view, other)).wait();
    backend.wait();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count() / 2);
  }
  const auto middle = times.begin() + kRoundTrips / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

slicing::TransferTime measure_transfers(Mesh& mesh, Backend& backend, std::int64_t hidden_size, std::int64_t shortest,
                                        std::int64_t longest) {
  const Tensor tensor(backend, backend.compute_dtype(), {longest, hidden_size});
  backend.fill_zero(tensor);
  std::vector<double> times(2);  // of the shortest and of the longest
  for (int stage = 0; stage + 1 < mesh.pipeline->size(); ++stage) {
    times[0] = std::max(times[0], one_way(mesh, backend, tensor.ref().slice(0, 0, shortest), stage));
    times[1] = std::max(times[1], one_way(mesh, backend, tensor, stage));
  }
  mesh.model->all_reduce_host(times, ReduceOp::kMax);
  mesh.data->all_reduce_host(times, ReduceOp::kMax);
  if (longest == shortest) return {.latency = times[0]};
  const double per_token = std::max(0.0, times[1] - times[0]) / static_cast<double>(longest - shortest);
  return {.latency = std::max(0.0, times[0] - per_token * static_cast<double>(shortest)), .per_token = per_token};
}

}  // namespace teratron
