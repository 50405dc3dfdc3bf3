// Backend: the coarse operations a transformer is made of (ops/operations.h defines them). Layers call these and
// nothing else; a back end supplies the kernels (ops/ref: scalar templates, ops/cpu: tuned, ops/cuda). Public members
// check the arguments once and notify the observer; a back end implements the protected do_* members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/float_types.h"
#include "ops/operations.h"
#include "tensor/memory.h"

namespace teratron {

// Notified when an operation begins and ends: for tracing, NaN hunts, counting. Calls that have nothing to compute are
// not reported. end() is called even if the operation threw, and must not throw.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void begin(std::string_view operation) = 0;
  virtual void end(std::string_view operation) = 0;
};

class Backend : public Allocator {
 public:
  virtual std::string_view name() const = 0;
  virtual DType compute_dtype() const = 0;                 // C
  virtual std::string processor() const { return {}; }     // the device's name; empty: the host's processor
  virtual std::string settings() const { return {}; }      // choices that change speed or bits, for people to read
  virtual bool has_frozen_linear() const { return true; }  // frozen_linear_forward() and frozen_linear_input_gradient()

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

  // Operations on memory take any floating dtype, whatever the compute type.

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
  // to = keep * to + scale * from, rounded once, each of any floating dtype. With keep 0 `to` is not read.
  void scale_add(TensorRef to, double keep, TensorRef from, double scale);
  // Between fp32 values and their halves (split_float in base/float_types.h), views of one shape: bf16 `nearest` and
  // u16 `remainder`.
  void split_floats(TensorRef nearest, TensorRef remainder, TensorRef from);
  void join_floats(TensorRef to, TensorRef nearest, TensorRef remainder);
  // Sum over all views; waits for a device once. Its order depends on the shapes alone: the bits are the same for any
  // number of threads, and equal the sum of one call for each view. Infinite or NaN if an element is, which loss
  // scaling relies on, or if squares of fp32 overflow.
  double sum_of_squares(std::span<const TensorRef> views);
  double sum_of_squares(TensorRef view) { return sum_of_squares({&view, 1}); }

  // Adds the values of a view to the Tally at `to` (u8 [16], aligned to 8), where tallies of a whole step stay: it
  // waits for no device. The order of the sum depends on the shape alone.
  void tally(TensorRef to, TensorRef from);

  // Whether no element of a view is infinite or NaN, by its tally: a sum of squares overflows where values do not.
  bool is_finite(TensorRef view);

  // Takes the memory that operations pass between their kernels (gpu_scratch_bytes), where a device has such, so that
  // it does not grow later. EnvironmentError where there is too little.
  virtual void reserve_scratch(std::int64_t /*bytes*/) {}

  // Copies a weight [O, I] of C into the order in which the kernels of a product read it, so that several products
  // share the copy (LinearForward::packed). `packed` is u8 of packed_weight_bytes() (ops/working_memory.h). CPUs alone.
  void pack_weight(TensorRef packed, TensorRef weight, WeightProduct use);

  // The operations that ops/operations.h defines: linear_forward(const LinearForward& args), ...
#define TERATRON_DECLARE(operation, Arguments) void operation(const Arguments& args);
  TERATRON_OPERATIONS(TERATRON_DECLARE)
#undef TERATRON_DECLARE

  void set_observer(CallObserver* observer) { observer_ = observer; }  // not owned; nullptr: none

 protected:
  // A back end overrides these: do_linear_forward(const LinearForward& args), ... Arguments are checked; there is at
  // least one row, so at least one element to write. Views given per row arrive as [rows, features], [rows] or
  // [features], whatever the caller's rank was; views of [batch, tokens, hidden] and of attention keep their rank.
  // Only back ends whose memory is not the host's read Dropout::counters; for others their values have been read.
  // do_fill gets value 0 for any dtype; do_copy gets two dtypes only if both are floating; do_fill_normal gets a view
  // [rows, columns], and its row_stride is not 0.
#define TERATRON_DECLARE(operation, Arguments) virtual void do_##operation(const Arguments& args) = 0;
#define TERATRON_DECLARE_MEMORY(Result, operation, ...) virtual Result do_##operation(__VA_ARGS__) = 0;
  TERATRON_OPERATIONS(TERATRON_DECLARE)
  TERATRON_MEMORY_OPERATIONS(TERATRON_DECLARE_MEMORY)
#undef TERATRON_DECLARE
#undef TERATRON_DECLARE_MEMORY
  virtual void do_replay(std::unique_ptr<Graph>& /*graph*/, const std::function<void()>& work) { work(); }
  virtual void do_pack_weight(const TensorRef& packed, const TensorRef& weight, WeightProduct use);  // InternalError

 private:
  class Call;
  template <class Arguments, class Compute>
  void run(std::string_view operation, Arguments args, const Compute& compute);
  void clear(const TensorRef& view);
  static void read_counters(Dropout& dropout);
  CallObserver* observer_ = nullptr;
};

// In the class of a back end: declares its do_* members.
#define TERATRON_OVERRIDE_OPERATIONS      \
  TERATRON_OPERATIONS(TERATRON_OVERRIDE_) \
  TERATRON_MEMORY_OPERATIONS(TERATRON_OVERRIDE_MEMORY_)
#define TERATRON_OVERRIDE_(operation, Arguments) void do_##operation(const Arguments& args) override;
#define TERATRON_OVERRIDE_MEMORY_(Result, operation, ...) Result do_##operation(__VA_ARGS__) override;

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
  // Matrix products of bf16 in the processor's own instructions, where it has them and they are faster; else widened to
  // fp32.
  bool bf16_products = true;
  // Products with weights in tiles in AVX512-VNNI, where the processor has it. The bits are the same without.
  bool vnni_products = true;
  bool frozen_linear = true;  // false: without the operations of Backend::has_frozen_linear(), as on GPUs
};
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

// Use of a kind of kernels: never; for the calls that they take; or for all, so that others are refused.
enum class KernelUse { kOff, kWherePossible, kRequired };

struct CudaOptions {
  DType compute_dtype = DType::kF32;  // or kBF16 (on Ampere and later), kF16
  int device = 0;                     // number of the GPU
  bool channels = false;              // to the GPUs of other processes, through NCCL; not for ranks that are threads
  bool tf32 = false;                  // matrix products of fp32 values rounded to 10 bits of mantissa
  // Large matrix products use the fastest algorithm and the fastest epilogue, which are measured once on a machine and
  // kept in the user's cache folder (ops/algorithms/algorithm_cache.h); false: the library's first choice.
  bool gemm_timing = true;
  double gemm_timed_from = 1e8;  // multiply-adds; below, most of a product's time is its launch
  bool graphs = true;            // replay() captures CUDA graphs
  // 16-bit attention by cuDNN (ops/cuda/cudnn/takes_cudnn.h), or by our kernels for Hopper's own instructions
  // (ops/cuda/attention/attention_hopper.h). Where both are possible cuDNN is asked first. If required:
  // EnvironmentError on devices that have none, UserError for a call that they do not take.
  KernelUse cudnn_attention = KernelUse::kOff, hopper_attention = KernelUse::kOff;
};
// Number of GPUs that this process can use; 0 if the CUDA module cannot be loaded.
int cuda_devices();
// EnvironmentError if the CUDA module (or cuDNN, if required) cannot be loaded, there is no device, or the device or
// its driver is too old.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options = {});

}  // namespace teratron
