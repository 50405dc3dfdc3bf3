#include "comm/process/process_communicator.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/process/reduce_work.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

// Keeps the memory open while messages are under way: MPI, and other processes through it, reach into it at any time,
// and connections whenever the rank waits for anything.
class OpenMemoryWork final : public Pending::Work {
 public:
  explicit OpenMemoryWork(Allocator* memory) : memory_(memory) {
    if (memory_ != nullptr) memory_->open_memory();
  }
  OpenMemoryWork(const OpenMemoryWork&) = delete;
  OpenMemoryWork& operator=(const OpenMemoryWork&) = delete;
  ~OpenMemoryWork() override {
    work_ = nullptr;
    if (memory_ != nullptr) memory_->close_memory();
  }
  void begin(std::unique_ptr<Pending::Work> work) { work_ = std::move(work); }
  void wait() override { work_->wait(); }

 private:
  Allocator* const memory_;
  std::unique_ptr<Pending::Work> work_;
};

class ProcessCommunicator final : public Communicator {
 public:
  ProcessCommunicator(std::unique_ptr<Transport> transport, Liveness& liveness)
      : transport_(std::move(transport)), liveness_(liveness), rank_(transport_->rank()), size_(transport_->size()) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void set_activity(std::string_view activity) override { liveness_.set_activity(activity); }

 protected:
  using Work = std::unique_ptr<Pending::Work>;

  Work do_all_reduce(const TensorRef& view, ReduceOp op) override { return start_reduce(view, view, op); }
  Work do_reduce_scatter(const TensorRef& out, const TensorRef& in) override {
    return start_reduce(out, in, ReduceOp::kSum);
  }
  Work do_all_gather(const TensorRef& out, const TensorRef& in) override;
  Work do_broadcast(const TensorRef& view, int root) override {
    return with_open_memory([&] { return transport_->start_broadcast(view.data, view.bytes(), root, next_tag()); });
  }
  Work do_send(const TensorRef& view, int to) override {
    return with_open_memory([&] {
      auto requests = transport_->requests(RequestKind::kMessage);
      requests->send(view.data, view.bytes(), to, 0);
      return std::make_unique<RequestsWork>(std::move(requests));
    });
  }
  Work do_receive(const TensorRef& view, int from) override {
    return with_open_memory([&] {
      auto requests = transport_->requests(RequestKind::kMessage);
      requests->receive(view.data, view.bytes(), from, 0);
      return std::make_unique<RequestsWork>(std::move(requests));
    });
  }
  void do_all_reduce_host(std::span<double> values, ReduceOp op) override;
  std::vector<std::string> do_all_gather_host(const std::string& text) override;
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members) override {
    return make_process_communicator(transport_->split(members), liveness_);
  }

 private:
  // Members start collectives in the same order, so they find the same tags.
  int next_tag() {
    constexpr int kCollectivesAtOnce = 16000;
    calls_ = (calls_ + 1) % kCollectivesAtOnce;
    return 2 * calls_;
  }
  template <class Begin>
  Work with_open_memory(const Begin& begin) {
    auto work = std::make_unique<OpenMemoryWork>(memory());
    work->begin(begin());
    return work;
  }
  Work start_reduce(const TensorRef& out, const TensorRef& in, ReduceOp op) {
    check(in.dtype != DType::kU8 && in.dtype != DType::kU16, "values that are reduced are numbers");
    return with_open_memory(
        [&] { return std::make_unique<ReduceWork>(*transport_, next_tag(), scratch_, out, in, op); });
  }

  const std::unique_ptr<Transport> transport_;
  Liveness& liveness_;
  const int rank_, size_;
  int calls_ = 0;
  ScratchPool scratch_;
};

std::unique_ptr<Pending::Work> ProcessCommunicator::do_all_gather(const TensorRef& out, const TensorRef& in) {
  return with_open_memory([&] {
    auto requests = transport_->requests(RequestKind::kCollective);
    const int tag = next_tag();
    const std::int64_t bytes = in.bytes();
    const auto part = [&](int rank) { return static_cast<std::byte*>(out.data) + rank * bytes; };
    if (part(rank_) != in.data) std::memcpy(part(rank_), in.data, static_cast<std::size_t>(bytes));
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ + step) % size_, to = (rank_ + size_ - step) % size_;
      requests->receive(part(from), bytes, from, tag);
      requests->send(in.data, bytes, to, tag);
    }
    return std::make_unique<RequestsWork>(std::move(requests));
  });
}

std::vector<std::string> ProcessCommunicator::do_all_gather_host(const std::string& text) {
  std::vector<std::string> texts(static_cast<std::size_t>(size_));
  texts[static_cast<std::size_t>(rank_)] = text;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size_));
  const auto own_length = static_cast<std::int64_t>(text.size());
  const int tag = next_tag();
  const auto sizes = transport_->requests(RequestKind::kCollective);
  const auto contents = transport_->requests(RequestKind::kCollective);
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    sizes->receive(&lengths[static_cast<std::size_t>(other)], sizeof(std::int64_t), other, tag);
    sizes->send(&own_length, sizeof(std::int64_t), other, tag);
  }
  sizes->wait();
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    std::string& theirs = texts[static_cast<std::size_t>(other)];
    theirs.resize(static_cast<std::size_t>(lengths[static_cast<std::size_t>(other)]));
    contents->receive(theirs.data(), static_cast<std::int64_t>(theirs.size()), other, tag + 1);
    contents->send(text.data(), own_length, other, tag + 1);
  }
  contents->wait();
  return texts;
}

void ProcessCommunicator::do_all_reduce_host(std::span<double> values, ReduceOp op) {
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  const std::vector<std::string> all =
      all_gather_host(std::string(reinterpret_cast<const char*>(bytes), values.size_bytes()));
  std::vector<const std::byte*> inputs;
  for (const std::string& theirs : all) {
    check_equal(theirs.size(), values.size_bytes(), "bytes of another rank's values");
    inputs.push_back(reinterpret_cast<const std::byte*>(theirs.data()));
  }
  reduce_elements(DType::kF64, op, {&bytes, 1}, inputs, static_cast<std::int64_t>(values.size()));
}

}  // namespace

std::unique_ptr<Communicator> make_process_communicator(std::unique_ptr<Transport> transport, Liveness& liveness) {
  return std::make_unique<ProcessCommunicator>(std::move(transport), liveness);
}

}  // namespace teratron
