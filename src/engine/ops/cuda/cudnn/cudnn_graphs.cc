#include "ops/cuda/cudnn/cudnn_graphs.h"

#include <bit>

#include "base/error.h"

namespace teratron::cuda {
namespace {

using cudnn_frontend::DataType_t;
using cudnn_frontend::DiagonalAlignment_t;
using cudnn_frontend::graph::SDPA_attributes;
using cudnn_frontend::graph::SDPA_backward_attributes;
using cudnn_frontend::graph::Tensor_attributes;

DataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return DataType_t::FLOAT;
    case DType::kBF16: return DataType_t::BFLOAT16;
    case DType::kF16: return DataType_t::HALF;
    default: throw InternalError(fmt::format("no graph for cuDNN has tensors of {}", name_of(dtype)));
  }
}

// The library's axes are [B, H, S, D]; ours are [B, S, H, D].
Tensor_attributes& describe_heads(Tensor_attributes& tensor, AttentionTensorId id, const TensorRef& view) {
  return tensor.set_uid(id)
      .set_data_type(type_of(view.dtype))
      .set_dim({view.dim(0), view.dim(2), view.dim(1), view.dim(3)})
      .set_stride({view.stride(0), view.stride(2), view.stride(1), view.stride(3)});
}

// [B, H, S_q], contiguous, with an axis of one element for the library. Both keep the natural logarithm.
Tensor_attributes& describe_log_sum_exp(Tensor_attributes& tensor, const TensorRef& view) {
  return tensor.set_uid(kLogSumExp)
      .set_data_type(type_of(view.dtype))
      .set_dim({view.dim(0), view.dim(1), view.dim(2), 1})
      .set_stride({view.dim(1) * view.dim(2), view.dim(2), 1, 1});
}

std::shared_ptr<Tensor_attributes> heads(CudnnGraph& graph, AttentionTensorId id, const TensorRef& view) {
  Tensor_attributes tensor;
  return graph.tensor(describe_heads(tensor, id, view));
}

std::unique_ptr<CudnnGraph> new_graph(DType dtype, int compute_capability) {
  auto graph = std::make_unique<CudnnGraph>();
  graph->set_io_data_type(type_of(dtype))
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT)
      .set_sm_version(compute_capability);
  return graph;
}

// The last query sees every key. Where there are as many queries as keys, both corners are the same to us; the library
// has more kernels for the first.
template <class Attributes>
Attributes attributes_of(const AttentionForward& args) {
  Attributes attributes;
  attributes.set_name("attention").set_attn_scale(static_cast<float>(args.scale));
  if (!args.causal) return attributes;
  const bool is_square = args.q.dim(1) == args.k.dim(1);
  attributes.set_diagonal_alignment(is_square ? DiagonalAlignment_t::TOP_LEFT : DiagonalAlignment_t::BOTTOM_RIGHT)
      .set_diagonal_band_right_bound(0);
  return attributes;
}

template <class Args>
CudnnGraphKey key_of_call(const Args& args, const AttentionForward& forward) {
  CudnnGraphKey key = {forward.causal, std::bit_cast<std::int64_t>(forward.scale)};
  for (const auto& [id, view] : tensors_of(args)) {
    key.push_back(static_cast<std::int64_t>(view.dtype));
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      key.push_back(view.dim(axis));
      key.push_back(view.stride(axis));
    }
  }
  return key;
}

}  // namespace

std::vector<AttentionTensor> tensors_of(const AttentionForward& args) {
  return {{kQ, args.q}, {kK, args.k}, {kV, args.v}, {kOut, args.out}, {kLogSumExp, args.log_sum_exp}};
}

std::vector<AttentionTensor> tensors_of(const AttentionBackward& args) {
  std::vector<AttentionTensor> tensors = tensors_of(args.forward);
  tensors.insert(tensors.end(),
                 {{kOutGradient, args.dout}, {kQGradient, args.dq}, {kKGradient, args.dk}, {kVGradient, args.dv}});
  return tensors;
}

CudnnGraphKey key_of(const AttentionForward& args) { return key_of_call(args, args); }
CudnnGraphKey key_of(const AttentionBackward& args) { return key_of_call(args, args.forward); }

std::unique_ptr<CudnnGraph> attention_graph(const AttentionForward& args, int compute_capability) {
  auto graph = new_graph(args.q.dtype, compute_capability);
  // Separate operations, not one (UNIFIED): for the latter, cuDNN 9.19 has no kernels on Ampere and Hopper.
  const auto attributes = attributes_of<SDPA_attributes>(args).set_generate_stats(true).set_implementation(
      cudnn_frontend::AttentionImplementation_t::COMPOSITE);
  const auto results =
      graph->sdpa(heads(*graph, kQ, args.q), heads(*graph, kK, args.k), heads(*graph, kV, args.v), attributes);
  describe_heads(*results[0], kOut, args.out).set_output(true);
  describe_log_sum_exp(*results[1], args.log_sum_exp).set_output(true);
  return graph;
}

std::unique_ptr<CudnnGraph> attention_graph(const AttentionBackward& args, int compute_capability) {
  const AttentionForward& forward = args.forward;
  auto graph = new_graph(forward.q.dtype, compute_capability);
  Tensor_attributes log_sum_exp;
  const auto gradients =
      graph->sdpa_backward(heads(*graph, kQ, forward.q), heads(*graph, kK, forward.k), heads(*graph, kV, forward.v),
                           heads(*graph, kOut, forward.out), heads(*graph, kOutGradient, args.dout),
                           graph->tensor(describe_log_sum_exp(log_sum_exp, forward.log_sum_exp)),
                           attributes_of<SDPA_backward_attributes>(forward).set_deterministic_algorithm(true));
  describe_heads(*gradients[0], kQGradient, args.dq).set_output(true);
  describe_heads(*gradients[1], kKGradient, args.dk).set_output(true);
  describe_heads(*gradients[2], kVGradient, args.dv).set_output(true);
  return graph;
}

void require(const cudnn_frontend::error_t& status, std::string_view what) {
  if (status.is_good()) return;
  throw_environment_error("cuDNN failed: {}: {}", what, status.err_msg.substr(0, status.err_msg.find('\n')));
}

}  // namespace teratron::cuda
