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
    if (!spool_->has_name()) continue;  // no later run asks
    const std::uint64_t count = measures[i].size();
    news_.append(reinterpret_cast<const char*>(&count), sizeof count);
    news_.append(reinterpret_cast<const char*>(measures[i].data()), count * sizeof count);
  }
}

void Survey::remember(std::string_view news) {
  const auto take = [&](void* to, std::size_t bytes) {
    check(bytes <= news.size(), "what was noted of a document is there");
    news.copy(static_cast<char*>(to), bytes);  // of no bytes to nowhere too
    news.remove_prefix(bytes);
  };
  std::vector<std::uint64_t> measures;
  while (!news.empty()) {
    std::uint64_t count = 0;
    take(&count, sizeof count);
    check(count <= news.size() / sizeof count, "what was noted of a document is there");
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

std::uint64_t Survey::keep() {
  spool_->keep();
  return static_cast<std::uint64_t>(spool_->bytes());
}

}  // namespace teratron
