#include "ops/cuda/cudnn/cudnn_attention.h"

#include <atomic>
#include <map>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "ops/cuda/cudnn/cudnn_graphs.h"
#include "ops/cuda/cudnn/cudnn_library.h"
#include "ops/cuda/cudnn/takes_cudnn.h"

namespace teratron::cuda {
namespace {

using cudnn_frontend::HeurMode_t;

// Share of the device's memory that a workspace may take. No plan of memory counts it, but logits leave a tenth free.
constexpr std::int64_t kWorkspaceShare = 20;

const AttentionForward& forward_of(const AttentionForward& args) { return args; }
const AttentionForward& forward_of(const AttentionBackward& args) { return args.forward; }

// Once in a process: every rank that is a thread would say the same.
void report_own_kernels(const AttentionForward& args, const std::exception& reason) {
  static std::atomic_flag reported;
  if (reported.test_and_set()) return;
  report_to_user(fmt::format(
      "cuDNN does not take attention of {} queries on {} keys, {} heads of {}, so Teratron's own kernels do ({}); said "
      "once, of the first such shape",
      args.q.dim(1), args.k.dim(1), args.q.dim(2), args.q.dim(3), reason.what()));
}

}  // namespace

// Building a plan is slow, so plans are kept: one for each key.
class CudnnAttention::Plans {
 public:
  Plans(cudaStream_t stream, const cudaDeviceProp& device, bool reports)
      : handle_(stream),
        compute_capability_(10 * device.major + device.minor),
        most_workspace_(static_cast<std::int64_t>(device.totalGlobalMem) / kWorkspaceShare),
        reports_(reports) {}

  template <class Args>
  bool run(const Args& args, Scratch& scratch) {
    if (!takes_cudnn(args, compute_capability_ / 10)) return false;
    const CudnnGraph* const plan = plan_for(args);
    if (plan == nullptr) return false;
    std::unordered_map<std::int64_t, void*> memory;
    for (const auto& [id, view] : tensors_of(args)) memory.emplace(id, view.data);
    require(plan->execute(handle_, memory, scratch.bytes(workspace_of(*plan))), "attention");
    return true;
  }

 private:
  static std::int64_t workspace_of(const CudnnGraph& plan) {
    std::int64_t bytes = 0;
    require(plan.get_workspace_size(bytes), "the size of its workspace");
    return bytes;
  }

  template <class Args>
  const CudnnGraph* plan_for(const Args& args) {
    auto [entry, is_new] = plans_.try_emplace(key_of(args));
    if (!is_new) return entry->second.get();
    try {
      auto plan = attention_graph(args, compute_capability_);
      require(plan->build(handle_, {HeurMode_t::A, HeurMode_t::FALLBACK}), "the choice of kernels");
      const std::int64_t workspace = workspace_of(*plan);
      if (workspace > most_workspace_) throw_environment_error("cuDNN needs a workspace of {} bytes", workspace);
      entry->second = std::move(plan);
    } catch (const std::exception& reason) {  // cudnn-frontend has exceptions of its own, too
      if (reports_) report_own_kernels(forward_of(args), reason);
    }
    return entry->second.get();
  }

  CudnnHandle handle_;
  int compute_capability_;
  std::int64_t most_workspace_;  // bytes
  bool reports_;
  std::map<CudnnGraphKey, std::unique_ptr<CudnnGraph>> plans_;  // null: the library has no kernels
};

CudnnAttention::CudnnAttention(cudaStream_t stream, const cudaDeviceProp& device, bool reports)
    : plans_(std::make_unique<Plans>(stream, device, reports)) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::forward(const AttentionForward& args, Scratch& scratch) { return plans_->run(args, scratch); }
bool CudnnAttention::backward(const AttentionBackward& args, Scratch& scratch) { return plans_->run(args, scratch); }

}  // namespace teratron::cuda
