#include "comm/staging.h"

#include <new>

namespace teratron {
namespace {

constexpr std::align_val_t kStagingAlignment{64};

struct Free {
  void operator()(std::byte* memory) const { ::operator delete[](memory, kStagingAlignment); }
};

// A view's elements on the host; absent where the view is.
class HostCopy {
 public:
  explicit HostCopy(const TensorRef& view) : view_(view) {
    if (!view) return;
    memory_.reset(new (kStagingAlignment) std::byte[static_cast<std::size_t>(view.bytes())]);
    view_.data = memory_.get();
  }
  const TensorRef& view() const { return view_; }

 private:
  TensorRef view_;
  std::unique_ptr<std::byte[], Free> memory_;
};

class StagedWork final : public Pending::Work {
 public:
  StagedWork(Allocator& memory, const CollectiveViews& views)
      : memory_(memory), views_(views), read_(views.read), written_(is_one_view() ? TensorRef() : views.written) {
    if (views.read) memory.copy_out(read_.view().data, views.read.data, views.read.bytes());
  }

  void begin(const std::function<std::unique_ptr<Work>(const CollectiveViews&)>& begin) {
    work_ = begin({read_.view(), written()});
  }

  void wait() override {
    if (work_) work_->wait();
    if (views_.written) memory_.copy_in(views_.written.data, written().data, views_.written.bytes());
  }

 private:
  bool is_one_view() const {
    return views_.read.data == views_.written.data && views_.read.shape == views_.written.shape;
  }
  const TensorRef& written() const { return is_one_view() ? read_.view() : written_.view(); }

  Allocator& memory_;
  CollectiveViews views_;
  HostCopy read_, written_;
  std::unique_ptr<Work> work_;
};

}  // namespace

std::unique_ptr<Pending::Work> start_staged(
    Allocator& memory, const CollectiveViews& views,
    const std::function<std::unique_ptr<Pending::Work>(const CollectiveViews&)>& begin) {
  auto work = std::make_unique<StagedWork>(memory, views);
  work->begin(begin);
  return work;
}

}  // namespace teratron
