#include "emulated_gpu/streams.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace teratron::emulated {
namespace {

thread_local double clock = 0;

// The first error of work that was done late, which every later call gets, as a real context does.
std::atomic<cudaError_t> device_error = cudaSuccess;

// A point of a stream's work, and the time of its clock there.
struct Point {
  std::atomic<bool> reached = false;
  double microseconds = 0;
  void reach() {
    microseconds = clock;
    reached = true;
    reached.notify_all();
  }
};

class LateQueue {
 public:
  // False: it was closed, and all its work is done.
  bool push(std::function<cudaError_t()> work) {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return false;
    works_.push_back(std::move(work));
    came_.notify_one();
    return true;
  }
  // Ends when its work is done.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    came_.notify_one();
  }

  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      came_.wait(lock, [this] { return !works_.empty() || is_closed_; });
      has_ended_ = works_.empty();
      if (has_ended_) return;
      const std::function<cudaError_t()> work = std::move(works_.front());
      works_.pop_front();
      lock.unlock();
      if (const cudaError_t error = done(work); error != cudaSuccess) device_error = error;
    }
  }

 private:
  static cudaError_t done(const std::function<cudaError_t()>& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the emulated GPU: %s\n", error.what());
      return cudaErrorLaunchFailure;
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<cudaError_t()>> works_;
  bool is_closed_ = false, has_ended_ = false;
};

}  // namespace
}  // namespace teratron::emulated

using namespace teratron::emulated;  // NOLINT: this is its other half

// Its thread outlives it where its work does, as a real stream's work outlives cudaStreamDestroy().
struct EmulatedStream {
  std::shared_ptr<LateQueue> queue = std::make_shared<LateQueue>();
};
struct EmulatedEvent {
  std::shared_ptr<Point> point;  // null: never recorded
};

namespace {

struct Streams {
  std::mutex mutex;
  std::set<std::shared_ptr<LateQueue>> all;
};

Streams& streams() {
  static auto* const ours = new Streams;  // threads may still use it while the program ends
  return *ours;
}

void wait_for(LateQueue& queue) {
  const auto point = std::make_shared<Point>();
  const bool has_to_wait = queue.push([point] {
    point->reach();
    return cudaSuccess;
  });
  if (has_to_wait) point->reached.wait(false);
}

}  // namespace

namespace teratron::emulated {

bool streams_are_late() {
  static const bool are_late = [] {
    const char* const kind = std::getenv("EMULATED_GPU");
    return kind != nullptr && std::string_view(kind) == "late";
  }();
  return are_late;
}

double clock_microseconds() { return clock; }
void pass_time(double microseconds) { clock += microseconds; }

cudaError_t run_on(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (stream == nullptr) return work();
  if (device_error != cudaSuccess) return device_error;
  stream->queue->push(std::move(work));
  return cudaSuccess;
}

cudaError_t wait_for_device() {
  std::vector<std::shared_ptr<LateQueue>> all;
  {
    const std::lock_guard lock(streams().mutex);
    all.assign(streams().all.begin(), streams().all.end());
  }
  for (const auto& queue : all) wait_for(*queue);
  return device_error;
}

}  // namespace teratron::emulated

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = nullptr;
  if (!streams_are_late()) return cudaSuccess;
  *stream = new EmulatedStream;
  std::thread([queue = (*stream)->queue] { queue->run(); }).detach();
  const std::lock_guard lock(streams().mutex);
  streams().all.insert((*stream)->queue);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return cudaSuccess;
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.erase(stream->queue);
  }
  stream->queue->close();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  if (stream != nullptr) wait_for(*stream->queue);
  return device_error;
}

cudaError_t cudaDeviceSynchronize() { return is_capturing() ? cudaErrorStreamCaptureUnsupported : wait_for_device(); }

// Where work is done at once, hosts wait for each other, and no stream has to.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream == nullptr || event->point == nullptr) return cudaSuccess;
  return run_on(stream, [point = event->point] {
    point->reached.wait(false);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* argument) {
  return run_on(stream, [=] {
    function(argument);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->point = std::make_shared<Point>();
  return run_on(stream, [point = event->point] {
    point->reach();
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  if (event->point != nullptr) event->point->reached.wait(false);
  return device_error;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>((end->point->microseconds - start->point->microseconds) / 1000);
  return cudaSuccess;
}
