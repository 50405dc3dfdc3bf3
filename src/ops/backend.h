// Backend: the coarse operations a transformer is made of. Layers call these and nothing else; a back end supplies
// the kernels (ops/ref: scalar templates, ops/cpu: tuned, ops/cuda). Public members check the arguments once and notify
// the observer; a back end implements the protected do_* members.
//
// Conventions: views are contiguous unless said otherwise. "rows" means the product of all axes but the last.
// Activation gradients overwrite their output, parameter gradients overwrite or, with `accumulate`, add. An output
// shares no memory with another view of its call unless stated. Row counts (T, B, S) may be 0; feature sizes (I, O, H,
// D, V, hidden) are at least 1. A violation is an InternalError that names the operation and the view. Legend: T rows
// (batch x tokens), I inputs, O outputs, B batch, S tokens, H heads, D head size, V vocabulary columns held here.
//
// Precision: a back end computes with one of f64, f32, bf16 and f16, its compute type C. It also has an accumulation
// type A: f64 for f64, else f32. Views are of C unless marked A: weights, activations, their gradients and logits are
// C; statistics, losses, parameter gradients and optimizer state are A. The 16-bit types only store: arithmetic and
// sums are in A (the reference uses f64 for all), and what is stored is rounded once, to nearest even; beyond f16's
// 65504 that is infinity. Where an operation reads its own output again, it reads the stored value and its comment says
// so; other intermediates are not rounded to C. Two back ends may therefore differ by the rounding of their sums in A
// and then, where that moved a value across a boundary of C's rounding, by one unit in C's last place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/float_types.h"
#include "base/philox.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace teratron {

enum class Activation { kNone, kGeluTanh, kGeluErf };

// y[T,O] = x[T,I] weight[O,I]^T + bias[O]; with an activation, `activated` receives activation(y) of y as stored, and y
// keeps the pre-activation for the backward pass.
struct LinearForward {
  TensorRef y, x, weight;
  TensorRef bias;  // optional
  Activation activation = Activation::kNone;
  TensorRef activated;  // [T,O], needed with an activation
};

// dx[T,I] = dy[T,O] weight[O,I]. With an activation (x was activation(u)): dx[T,I] = (dy weight) * activation'(u), the
// gradient of u, and `activated` receives activation(u) again, for the weight gradient that follows.
struct LinearInputGradient {
  TensorRef dx, dy, weight;
  Activation activation = Activation::kNone;
  TensorRef pre_activation;  // u [T,I]
  TensorRef activated;       // [T,I]; may share memory with pre_activation
};

// dweight[O,I] (+)= dy[T,O]^T x[T,I]; dbias[O] (+)= sum over T of dy.
struct LinearWeightGradient {
  TensorRef dweight;  // A
  TensorRef dy, x;
  TensorRef dbias;  // A, optional
  bool accumulate = false;
};

// Inverted dropout whose mask depends only on the global element: element e of the whole (unsplit) tensor is kept iff
// the 16-bit lane e % 8 (low half of word 0 first) of random.bits(e / 8) is at least threshold(); kept values are
// multiplied by scale(). Activations [batch, tokens, hidden]: e = ((first_sample + b) * sequence_length +
// first_position + t) * hidden + j. Attention probabilities: e = (((first_sample + b) * heads + first_head + h) *
// sequence_length + query) * key_stride() + key, with query and key global positions.
struct Dropout {
  double probability = 0;  // 0: no dropout, nothing is drawn
  RandomStream random;
  std::int64_t first_sample = 0, sequence_length = 0, first_position = 0;
  std::int64_t first_head = 0, heads = 0;  // attention only

  bool active() const { return probability > 0; }
  std::uint32_t threshold() const;
  float scale() const;
  std::int64_t key_stride() const { return (sequence_length + 7) / 8 * 8; }
};

struct LayerNormForward {
  TensorRef y;           // [.., hidden]
  TensorRef mean, rstd;  // A [rows], written
  TensorRef x, gamma, beta;
  double epsilon = 1e-5;
};

// sum = residual + dropout(branch). sum may be residual.
struct ResidualAdd {
  TensorRef sum, residual, branch;  // [batch, tokens, hidden]
  Dropout dropout;
};

struct LayerNormBackward {
  TensorRef dx;
  TensorRef dgamma, dbeta;  // A
  TensorRef dy, x;
  TensorRef mean, rstd;  // A
  TensorRef gamma;
  bool accumulate_dx = false;  // dx += : the residual stream's gradient is already there
  bool accumulate = false;     // for dgamma and dbeta
};

// Scaled dot-product attention of S_q queries on S_k keys (S_k >= S_q: the queries are the last S_q positions). All
// views may be strided with unit stride along D, so that q, k and v can be parts of one packed projection or of a
// key/value cache. Causal: query i sees keys 0 .. S_k - S_q + i. log_sum_exp is kept for the backward pass. A back end
// may round the probabilities p (with dropout, or before they are divided by their sum) to C before it multiplies v.
//
// Sequences of different lengths lie in one batch with padding after their text. Positions count over the whole
// sequence: key j is position j, query i is position S_k - S_q + i, and sequence b has text at its first lengths[b]
// positions, 0 <= lengths[b] <= S_k. No query sees a padded key. Padded queries are not computed: their rows of out and
// log_sum_exp become 0. Padded rows of q, k and v are not used, whatever they hold. Padding takes next to no time.
struct AttentionForward {
  TensorRef out;          // [B, S_q, H, D]
  TensorRef log_sum_exp;  // A [B, H, S_q], natural logarithm of the scaled scores' sum of exponentials
  TensorRef q, k, v;      // [B, S_q, H, D], [B, S_k, H, D], [B, S_k, H, D]
  TensorRef lengths;      // i32 [B], optional: without it there is no padding
  bool causal = true;
  double scale = 0;  // usually 1 / sqrt(D)
  Dropout dropout;   // first_position is the first query's; keys count from position first_position - (S_k - S_q)
};

// dk and dv cover all S_k keys; with accumulate_kv they are added to (token slices, TeraPipe section 3). Both are of C
// or both of A, so that the sums over many slices need not be rounded to C in between. A back end may take the sum over
// keys of p * dp as dout . out, with `out` as stored, and may round p and ds to C before it multiplies with them.
// With forward.lengths, dq of padded queries becomes 0 and their rows of dout are not used; dk and dv of padded keys
// become 0 or, with accumulate_kv, keep their values.
struct AttentionBackward {
  TensorRef dq, dk, dv;  // strided like q, k, v
  TensorRef dout;        // [B, S_q, H, D]
  AttentionForward forward;
  bool accumulate_kv = false;
};

// Attention of the next tokens of a key/value cache. The length of the cache is read from memory, so that a captured
// call (Backend::replay) stays right while the cache grows. With n = length[0]: rows n .. n + T - 1 of both caches
// become k and v, then query t sees cached rows 0 .. n + t. There must be room: 0 <= n, n + T <= S. Views may be
// strided as in AttentionForward, whose rounding this has, too.
struct CachedAttention {
  TensorRef out, q, k, v;  // [B, T, H, D]
  TensorRef keys, values;  // the caches, [B, S, H, D]
  TensorRef length;        // i32 [1]
  double scale = 0;        // usually 1 / sqrt(D)
};

// y[b,t,:] = dropout(tokens[ids[b,t]] + positions[first_position + t]). Rows of ids outside [vocab_begin, vocab_begin
// + V) contribute zero for the token part (a vocabulary split over ranks, which add up their parts and then the
// positions: without `positions` that term is zero).
struct EmbeddingForward {
  TensorRef y;          // [batch, tokens, hidden]
  TensorRef ids;        // i32 [batch, tokens]
  TensorRef tokens;     // [V, hidden]
  TensorRef positions;  // [max positions, hidden], optional
  std::int64_t first_position = 0, vocab_begin = 0;
  Dropout dropout;
};

// dtokens and dpositions are added to where accumulate is set, else overwritten as a whole (rows never seen get 0).
// Either may be left out.
struct EmbeddingBackward {
  TensorRef dtokens, dpositions;  // A
  TensorRef dy, ids;
  std::int64_t first_position = 0, vocab_begin = 0;
  Dropout dropout;
  bool accumulate_tokens = false, accumulate_positions = false;
};

// Softmax statistics of the columns held here, for a cross-entropy that never gathers the logits (Megatron section 3).
// Columns at or beyond valid_columns (counted from the first one held here) are padding: left out of the softmax, their
// gradient is zero. Where all are, max is -infinity and sum 0.
struct CrossEntropyPartials {
  // A [T]: row maximum, sum of exp(logit - max), logit of the target (0 if not here)
  TensorRef max, sum, target_logit;
  TensorRef logits;   // [T, V]
  TensorRef targets;  // i32 [T], global ids
  std::int64_t vocab_begin = 0, valid_columns = 0;
};

// In place: logits[T,V] becomes weight[t] * (softmax - onehot(target)), with the global max and sum.
struct CrossEntropyBackward {
  TensorRef logits;
  TensorRef max, sum;  // A [T]
  TensorRef targets;   // i32 [T]
  TensorRef weight;    // A [T]: loss mask times the scale of the loss
  std::int64_t vocab_begin = 0, valid_columns = 0;
};

// One AdamW update (Loshchilov and Hutter): decoupled decay, bias correction by the powers given. In mixed precision
// `parameter` is the master copy and `working`, which the layers read, receives it rounded to C.
struct AdamW {
  TensorRef parameter, gradient, moment1, moment2;  // A
  TensorRef working;                                // C, optional; then `parameter` is read by nobody else
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  double correction1 = 1, correction2 = 1;  // 1 - beta^step
  double gradient_scale = 1;                // the clip coefficient, and 1 / loss scale
};

// Notified when an operation begins and ends: for tracing, NaN hunts, counting. Calls without rows are not reported.
// end() is called even if the operation threw, and must not throw.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begin(std::string_view operation) = 0;
  virtual void end(std::string_view operation) = 0;
};

class Backend : public Allocator {
 public:
  virtual std::string_view name() const = 0;
  virtual DType compute_dtype() const = 0;              // C
  virtual std::string processor() const { return {}; }  // the device's name; empty: the host's processor
  virtual std::string settings() const { return {}; }   // options that change speed and are not at their default

  // A device may run calls after they return, in order. wait() returns when every earlier call is done.
  virtual void wait() {}
  // A timestamp in the device's queue: when every call before timestamp() was done. seconds() is of the host's
  // monotonic clock, and valid after the next wait().
  class Timestamp {
   public:
    virtual ~Timestamp() = default;
    virtual double seconds() const = 0;
  };
  virtual std::shared_ptr<const Timestamp> timestamp();
  // A named range for the device's profiler. Ranges nest; every operation is a range too.
  virtual void begin_range(std::string_view /*name*/) {}
  virtual void end_range() noexcept {}
  // replay() runs `work`, the same sequence of calls each time, with less overhead: a back end that captures graphs
  // calls `work` a few times, captures its calls in `graph`, and then launches the graph instead. Calls, views and
  // values must be the same each time; only the contents of memory may change. `work` must not transfer to or from the
  // host or other ranks, and must not allocate or free memory. A graph belongs to one `work`, and is destroyed before
  // the memory that the work uses. With an observer, replay() always calls `work`.
  class Graph {
   public:
    virtual ~Graph() = default;
  };
  virtual bool captures_graphs() const { return false; }  // false: replay() always calls `work`
  void replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work);
  DType accumulation_dtype() const { return accumulation_dtype_of(compute_dtype()); }  // A

  // The operations from here to add(), and sum_of_squares(), take any floating dtype, whatever the compute type.

  // Between host memory, the only kind that a caller may read, and the back end's. Integer dtypes too.
  void upload(TensorRef to, const void* from);
  void download(void* to, TensorRef from);
  // Same shape, any strides. Between floating dtypes it converts, rounding once; of other dtypes both must be one.
  void copy(TensorRef to, TensorRef from);
  void fill_zero(TensorRef view);  // integer dtypes too
  // Element (r, c) of view [.., columns] becomes stddev * the normal value number n = first_index + r * row_stride + c
  // of `random`: value n % 2 of normal_from_bits(words 0 and 1 of random.bits(n / 2)), in double, rounded once when
  // stored. With row_stride the columns of a larger matrix, the view is a block of it; 0 stands for the view's own.
  void fill_normal(TensorRef view, const RandomStream& random, std::int64_t first_index, double stddev,
                   std::int64_t row_stride = 0);
  void fill(TensorRef view, double value);
  void add(TensorRef to, TensorRef from);  // to += from, of one dtype

  void linear_forward(const LinearForward& args);
  void linear_input_gradient(const LinearInputGradient& args);
  void linear_weight_gradient(const LinearWeightGradient& args);
  void layer_norm_forward(const LayerNormForward& args);
  void layer_norm_apply(const LayerNormForward& args);  // y again from the mean and rstd already there
  void layer_norm_backward(const LayerNormBackward& args);
  void residual_add(const ResidualAdd& args);
  // sum = residual + dropout(branch), then the layer norm of sum (norm.x is sum): one pass over memory.
  void residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm);
  void dropout_backward(TensorRef dbranch, TensorRef dsum, const Dropout& dropout);  // may be in place
  void attention_forward(const AttentionForward& args);
  void attention_backward(const AttentionBackward& args);
  void cached_attention(const CachedAttention& args);
  void embedding_forward(const EmbeddingForward& args);
  void embedding_backward(const EmbeddingBackward& args);
  void cross_entropy_partials(const CrossEntropyPartials& args);
  // sum[T] *= exp(own_max - max), all A: partial sums of several ranks brought to the same maximum, so that they add
  // up. Where own_max is -infinity, sum stays 0.
  void cross_entropy_rescale(TensorRef sum, TensorRef own_max, TensorRef max);
  // loss[T] = log(sum) + max - target_logit, all A
  void cross_entropy_loss(TensorRef loss, TensorRef max, TensorRef sum, TensorRef target_logit);
  void cross_entropy_backward(const CrossEntropyBackward& args);
  void adamw(const AdamW& args);
  // The order of the sum depends on the shape alone: the same bits for any number of threads. Infinite or NaN if an
  // element is (loss scaling finds overflows so) or if squares of fp32 overflow.
  double sum_of_squares(TensorRef view);

  void set_observer(CallObserver* observer) { observer_ = observer; }  // not owned; nullptr: none

 protected:
  // A back end implements these. Arguments are checked; there is at least one row, so at least one element to write.
  // Views given per row arrive as [rows, features], [rows] or [features], whatever the caller's rank was; views of
  // [batch, tokens, hidden] and of attention keep their rank. do_fill gets value 0 for any dtype; do_copy gets two
  // dtypes only if both are floating; do_fill_normal gets a view [rows, columns].
  virtual void do_upload(const TensorRef& to, const void* from) = 0;
  virtual void do_download(void* to, const TensorRef& from) = 0;
  virtual void do_copy(const TensorRef& to, const TensorRef& from) = 0;
  virtual void do_fill(const TensorRef& view, double value) = 0;
  virtual void do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index,
                              double stddev, std::int64_t row_stride) = 0;
  virtual void do_add(const TensorRef& to, const TensorRef& from) = 0;
  virtual void do_linear_forward(const LinearForward& args) = 0;
  virtual void do_linear_input_gradient(const LinearInputGradient& args) = 0;
  virtual void do_linear_weight_gradient(const LinearWeightGradient& args) = 0;
  virtual void do_layer_norm_forward(const LayerNormForward& args) = 0;
  virtual void do_layer_norm_apply(const LayerNormForward& args) = 0;
  virtual void do_layer_norm_backward(const LayerNormBackward& args) = 0;
  virtual void do_residual_add(const ResidualAdd& args) = 0;
  virtual void do_residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm) = 0;
  virtual void do_dropout_backward(const TensorRef& dbranch, const TensorRef& dsum, const Dropout& dropout) = 0;
  virtual void do_attention_forward(const AttentionForward& args) = 0;
  virtual void do_attention_backward(const AttentionBackward& args) = 0;
  virtual void do_cached_attention(const CachedAttention& args);  // by do_copy and do_attention_forward, on the host
  virtual void do_embedding_forward(const EmbeddingForward& args) = 0;
  virtual void do_embedding_backward(const EmbeddingBackward& args) = 0;
  virtual void do_cross_entropy_partials(const CrossEntropyPartials& args) = 0;
  virtual void do_cross_entropy_rescale(const TensorRef& sum, const TensorRef& own_max, const TensorRef& max) = 0;
  virtual void do_cross_entropy_loss(const TensorRef& loss, const TensorRef& max, const TensorRef& sum,
                                     const TensorRef& target_logit) = 0;
  virtual void do_cross_entropy_backward(const CrossEntropyBackward& args) = 0;
  virtual void do_adamw(const AdamW& args) = 0;
  virtual double do_sum_of_squares(const TensorRef& view) = 0;
  virtual void do_replay(std::unique_ptr<Graph>& /*graph*/, const std::function<void()>& work) { work(); }

 private:
  class Call;
  CallObserver* observer_ = nullptr;
};

// A range of the profiler from construction to destruction.
class BackendRange {
 public:
  BackendRange(Backend& backend, std::string_view name) : backend_(backend) { backend.begin_range(name); }
  BackendRange(const BackendRange&) = delete;
  BackendRange& operator=(const BackendRange&) = delete;
  ~BackendRange() { backend_.end_range(); }

 private:
  Backend& backend_;
};

// Scalar loops for any floating type: the definition that the tests compare every other back end with.
std::unique_ptr<Backend> make_reference_backend(DType compute_dtype);

struct CpuOptions {
  DType compute_dtype = DType::kF32;  // or kBF16, kF16
  bool guard_memory = false;          // device memory is unreadable outside of calls (finds code that reads it there)
};
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

struct CudaOptions {
  DType compute_dtype = DType::kF32;  // or kBF16 (on Ampere and later), kF16
  int device = 0;                     // number of the GPU
  bool channels = false;              // to the GPUs of other processes, through NCCL; not for ranks that are threads
  bool tf32 = false;                  // matrix products of fp32 values rounded to 10 bits of mantissa
  // Large matrix products use the fastest algorithm, which is measured once on a machine and kept in the user's cache
  // folder (ops/algorithms/algorithm_cache.h); false: the library's first choice.
  bool gemm_timing = true;
  bool graphs = true;            // replay() captures CUDA graphs
  bool cudnn_attention = false;  // 16-bit attention by cuDNN for calls it supports; backward does not repeat bitwise
};
// Number of GPUs that this process can use; 0 if the CUDA module cannot be loaded.
int cuda_devices();
// EnvironmentError if the CUDA module (or cuDNN, if asked for) cannot be loaded, there is no device, or the device or
// its driver is too old.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options = {});

}  // namespace teratron
