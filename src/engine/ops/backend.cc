// The public members of Backend check the arguments, notify the observer, open the back end's memory and call do_*.
// Calls without rows return here, so that kernels always have something to do.
#include "ops/backend.h"

#include <cmath>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "ops/argument_checks.h"

namespace teratron {

// Brackets one do_* call: opens its range, notifies the observer and opens the memory; the destructor ends all three.
class Backend::Call {
 public:
  Call(Backend& backend, std::string_view operation)
      : range_(backend, operation), announcement_(backend.observer_, operation), access_(&backend) {}

 private:
  struct Announcement {
    CallObserver* observer;
    std::string_view operation;
    Announcement(CallObserver* called, std::string_view name) : observer(called), operation(name) {
      if (observer != nullptr) observer->begin(operation);
    }
    Announcement(const Announcement&) = delete;
    ~Announcement() {
      if (observer != nullptr) observer->end(operation);
    }
  };
  BackendRange range_;
  Announcement announcement_;
  OpenMemory access_;
};

std::shared_ptr<const Backend::Timestamp> Backend::timestamp() {
  struct Now final : Timestamp {
    double now = monotonic_seconds();
    double seconds() const override { return now; }
  };
  return std::make_shared<Now>();
}

void Backend::upload(TensorRef to, const void* from) {
  const ArgumentChecks checks("upload", compute_dtype());
  checks.present("to", to, to.dtype);
  checks.contiguous("to", to);
  if (to.elements() == 0) return;
  checks.require(from != nullptr, "there is host memory to read");
  const Call call(*this, "upload");
  do_upload(to, from);
}

void Backend::download(void* to, TensorRef from) {
  const ArgumentChecks checks("download", compute_dtype());
  checks.present("from", from, from.dtype);
  checks.contiguous("from", from);
  if (from.elements() == 0) return;
  checks.require(to != nullptr, "there is host memory to write");
  const Call call(*this, "download");
  do_download(to, from);
}

void Backend::copy(TensorRef to, TensorRef from) {
  const ArgumentChecks checks("copy", compute_dtype());
  checks.present("to", to, to.dtype);
  checks.present("from", from, is_floating(to.dtype) && is_floating(from.dtype) ? from.dtype : to.dtype);
  checks.same_shape({"from", from}, {"to", to});
  checks.separate({{"to", to}}, {{"from", from}});
  if (to.elements() == 0) return;
  const Call call(*this, "copy");
  do_copy(to, from);
}

void Backend::fill_zero(TensorRef view) {
  const ArgumentChecks checks("fill_zero", compute_dtype());
  checks.present("view", view, view.dtype);
  checks.contiguous("view", view);
  if (view.elements() == 0) return;
  const Call call(*this, "fill_zero");
  do_fill(view, 0);
}

void Backend::fill_normal(TensorRef view, const RandomStream& random, std::int64_t first_index, double stddev,
                          std::int64_t row_stride) {
  const ArgumentChecks checks("fill_normal", compute_dtype());
  checks.floating("view", view);
  checks.present("view", view, view.dtype);
  checks.require(first_index >= 0, "first_index is not negative");
  if (view.elements() == 0) return;
  const std::int64_t columns = checks.columns("view", view);
  view = checks.matrix("view", view, checks.rows("view", view), columns, view.dtype);
  checks.require(row_stride == 0 || row_stride >= columns, "a row's numbers end before the next row's");
  const Call call(*this, "fill_normal");
  do_fill_normal(view, random, first_index, stddev, row_stride == 0 ? columns : row_stride);
}

void Backend::fill(TensorRef view, double value) {
  const ArgumentChecks checks("fill", compute_dtype());
  checks.floating("view", view);
  view = checks.vector("view", view, view.elements(), view.dtype);
  if (view.elements() == 0) return;
  const Call call(*this, "fill");
  do_fill(view, value);
}

void Backend::add(TensorRef to, TensorRef from) {
  const ArgumentChecks checks("add", compute_dtype());
  checks.floating("to", to);
  checks.same_shape({"from", from}, {"to", to});
  to = checks.vector("to", to, to.elements(), to.dtype);
  from = checks.vector("from", from, from.elements(), to.dtype);
  checks.separate({{"to", to}}, {{"from", from}});
  if (to.elements() == 0) return;
  const Call call(*this, "add");
  do_add(to, from);
}

void Backend::scale_add(TensorRef to, double keep, TensorRef from, double scale) {
  const ArgumentChecks checks("scale_add", compute_dtype());
  checks.floating("to", to);
  checks.floating("from", from);
  checks.same_shape({"from", from}, {"to", to});
  to = checks.vector("to", to, to.elements(), to.dtype);
  from = checks.vector("from", from, from.elements(), from.dtype);
  checks.separate({{"to", to}}, {{"from", from}});
  if (to.elements() == 0) return;
  const Call call(*this, "scale_add");
  do_scale_add(to, keep, from, scale);
}

namespace {

struct FloatViews {
  TensorRef whole, nearest, remainder;

  void check(const ArgumentChecks& checks) {
    checks.same_shape({"nearest", nearest}, {"whole", whole});
    checks.same_shape({"remainder", remainder}, {"whole", whole});
    whole = checks.vector("whole", whole, whole.elements(), DType::kF32);
    nearest = checks.vector("nearest", nearest, whole.elements(), DType::kBF16);
    remainder = checks.vector("remainder", remainder, whole.elements(), DType::kU16);
  }
};

}  // namespace

void Backend::split_floats(TensorRef nearest, TensorRef remainder, TensorRef from) {
  const ArgumentChecks checks("split_floats", compute_dtype());
  FloatViews views{.whole = from, .nearest = nearest, .remainder = remainder};
  views.check(checks);
  checks.separate({{"nearest", nearest}, {"remainder", remainder}}, {{"from", from}});
  if (from.elements() == 0) return;
  const Call call(*this, "split_floats");
  do_split_floats(views.nearest, views.remainder, views.whole);
}

void Backend::join_floats(TensorRef to, TensorRef nearest, TensorRef remainder) {
  const ArgumentChecks checks("join_floats", compute_dtype());
  FloatViews views{.whole = to, .nearest = nearest, .remainder = remainder};
  views.check(checks);
  checks.separate({{"to", to}}, {{"nearest", nearest}, {"remainder", remainder}});
  if (to.elements() == 0) return;
  const Call call(*this, "join_floats");
  do_join_floats(views.whole, views.nearest, views.remainder);
}

double Backend::sum_of_squares(std::span<const TensorRef> views) {
  const ArgumentChecks checks("sum_of_squares", compute_dtype());
  std::vector<TensorRef> flat;
  for (const TensorRef& view : views) {
    checks.floating("view", view);
    flat.push_back(checks.vector("view", view, view.elements(), view.dtype));
    if (view.elements() == 0) flat.pop_back();
  }
  if (flat.empty()) return 0;
  const Call call(*this, "sum_of_squares");
  return do_sum_of_squares(flat);
}

void Backend::tally(TensorRef to, TensorRef from) {
  const ArgumentChecks checks("tally", compute_dtype());
  to = checks.vector("to", to, sizeof(Tally), DType::kU8);
  checks.require(reinterpret_cast<std::uintptr_t>(to.data) % alignof(Tally) == 0, "a tally is aligned");
  checks.floating("from", from);
  from = checks.vector("from", from, from.elements(), from.dtype);
  checks.separate({{"to", to}}, {{"from", from}});
  if (from.elements() == 0) return;
  const Call call(*this, "tally");
  do_tally(to, from);
}

bool Backend::is_finite(TensorRef view) {
  const Buffer memory(*this, sizeof(Tally));
  const TensorRef place = memory.view(DType::kU8, {sizeof(Tally)});
  fill_zero(place);
  tally(place, view);
  Tally found;
  download(&found, place);
  return std::isfinite(found.largest);
}

void Backend::pack_weight(TensorRef packed, TensorRef weight, WeightProduct use) {
  const ArgumentChecks checks("pack_weight", compute_dtype());
  packed = checks.vector("packed", packed, packed.elements(), DType::kU8);
  weight = checks.matrix("weight", weight, checks.rows("weight", weight), checks.columns("weight", weight));
  checks.separate({{"packed", packed}}, {{"weight", weight}});
  const Call call(*this, "pack_weight");
  do_pack_weight(packed, weight, use);
}

void Backend::do_pack_weight(const TensorRef& /*packed*/, const TensorRef& /*weight*/, WeightProduct /*use*/) {
  check(false, "a back end that packs weights");
}

// Checks and computes one call. Without rows there is nothing to compute, but gradients that are not added to become 0.
template <class Arguments, class Compute>
void Backend::run(std::string_view operation, Arguments args, const Compute& compute) {
  if (check_arguments(args, ArgumentChecks(operation, compute_dtype()))) {
    const Call call(*this, operation);
    Dropout* const dropout = dropout_of(args);
    if (dropout != nullptr && is_host_memory()) read_counters(*dropout);
    compute(args);
  } else if (const std::vector<TensorRef> gradients = cleared_without_rows(args); !gradients.empty()) {
    const Call call(*this, operation);
    for (const TensorRef& gradient : gradients) clear(gradient);
  }
}

void Backend::read_counters(Dropout& dropout) {
  if (!dropout.active() || !dropout.counters) return;
  const auto* const counters = dropout.counters.as<const std::int32_t>();
  dropout.random.step = static_cast<std::uint32_t>(counters[0]);
  dropout.first_sample = counters[1];
}

void Backend::clear(const TensorRef& view) {
  if (view.is_contiguous()) return do_fill(view, 0);
  for (std::int64_t i = 0; i < view.dim(0); ++i) clear(view.select(0, i));
}

#define TERATRON_DEFINE(operation, Arguments)                                         \
  void Backend::operation(const Arguments& args) {                                    \
    run(#operation, args, [this](const Arguments& valid) { do_##operation(valid); }); \
  }
TERATRON_OPERATIONS(TERATRON_DEFINE)

void Backend::replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
  observer_ == nullptr ? do_replay(graph, work) : work();
}

}  // namespace teratron
