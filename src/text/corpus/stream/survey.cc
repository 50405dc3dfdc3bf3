#include "corpus/stream/survey.h"

#include "base/error.h"
#include "base/host/threads.h"

namespace teratron {
namespace {

constexpr std::int64_t kDocumentsPerMeasuring = 4;

}  // namespace

void Survey::add(const std::vector<Document>& documents) {
  std::vector<std::vector<std::uint64_t>> measures(documents.size());
  parallel_for(std::ssize(documents), kDocumentsPerMeasuring, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) {
      const auto i = static_cast<std::size_t>(begin);
      measures[i] = stage_.measure(documents[i]);
    }
  });
  for (std::size_t i = 0; i < documents.size(); ++i) {
    stage_.note(spool_->add(documents[i]), measures[i]);
    if (!spool_->has_name()) continue;  // no run can resume
    const std::uint64_t count = measures[i].size();
    state_delta_.append(reinterpret_cast<const char*>(&count), sizeof count);
    state_delta_.append(reinterpret_cast<const char*>(measures[i].data()), count * sizeof count);
  }
}

void Survey::restore_state(std::string_view delta) {
  const auto take = [&](void* to, std::size_t bytes) {
    check(bytes <= delta.size(), "what was noted of a document is there");
    delta.copy(static_cast<char*>(to), bytes);  // `to` may be null for no bytes
    delta.remove_prefix(bytes);
  };
  std::vector<std::uint64_t> measures;
  while (!delta.empty()) {
    std::uint64_t count = 0;
    take(&count, sizeof count);
    check(count <= delta.size() / sizeof count, "what was noted of a document is there");
    measures.resize(count);
    take(measures.data(), count * sizeof count);
    stage_.note(remembered_++, measures);
  }
}

const Spool& Survey::settle() {
  spool_->end_writing();
  stage_.settle(*spool_);
  return *spool_;
}

}  // namespace teratron
