#include "ops/cuda/cudnn/cudnn_engine.h"

#include <optional>

#include "base/error.h"
#include "ops/cuda/cudnn/cudnn_graph_descriptor.h"

namespace teratron::cuda {

struct CudnnEngine::Library {
  const CudnnLibrary& functions = cudnn_library();
  cudnnHandle_t handle = nullptr;
};

struct CudnnEngine::Plan {
  Graph graph;  // holds the values that runs read
  GraphDescriptor description;
  std::optional<Descriptor> kernels, plan;  // chosen, and made of them
  std::int64_t workspace = 0;

  Plan(const CudnnLibrary& library, cudnnHandle_t handle, const Graph& given)
      : graph(given), description(library, graph, handle) {}

  bool choose_kernels(const CudnnLibrary& library, cudnnHandle_t handle, cudnnBackendHeurMode_t mode);
};

// Takes the first that works of the library's own list, best first. False: none does.
bool CudnnEngine::Plan::choose_kernels(const CudnnLibrary& library, cudnnHandle_t handle, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "the choice of kernels");
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, description.get());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (!heuristics.try_finalize()) return false;
  for (Descriptor& found :
       heuristics.listed(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "kernels")) {
    Descriptor tried(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "an execution plan");
    tried.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    tried.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, found);
    if (!tried.try_finalize()) continue;
    workspace = tried.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    kernels = std::move(found);
    plan = std::move(tried);
    return true;
  }
  return false;
}

CudnnEngine::CudnnEngine(cudaStream_t stream) : library_(std::make_unique<Library>()) {
  const CudnnLibrary& functions = library_->functions;
  functions.require(functions.create(&library_->handle), "its start");
  const cudnnStatus_t status = functions.set_stream(library_->handle, stream);
  if (status == CUDNN_STATUS_SUCCESS) return;
  functions.destroy(library_->handle);
  functions.require(status, "its stream");
}

CudnnEngine::~CudnnEngine() { library_->functions.destroy(library_->handle); }

std::shared_ptr<const CudnnEngine::Plan> CudnnEngine::plan(const Graph& graph) {
  auto made = std::make_shared<Plan>(library_->functions, library_->handle, graph);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (made->choose_kernels(library_->functions, library_->handle, mode)) return made;
  }
  throw_environment_error("cuDNN has no kernels for a graph of {} operations on this device",
                          graph.operations().size());
}

std::int64_t CudnnEngine::workspace_bytes(const Plan& plan) { return plan.workspace; }

void CudnnEngine::run(const Plan& plan, std::span<const Binding> bindings, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> places;
  for (const Binding& binding : bindings) {
    ids.push_back(unique_id(binding.tensor));
    places.push_back(binding.memory);
  }
  const std::vector<GraphTensor>& tensors = plan.graph.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind != GraphTensor::Kind::kValue) continue;
    ids.push_back(unique_id(static_cast<TensorId>(i)));
    places.push_back(const_cast<void*>(tensors[i].address_of_value()));  // the library only reads it
  }
  Descriptor pack(library_->functions, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the memory of a run");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(places));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  library_->functions.require(library_->functions.execute(library_->handle, plan.plan->get(), pack.get()), "a graph");
}

}  // namespace teratron::cuda
