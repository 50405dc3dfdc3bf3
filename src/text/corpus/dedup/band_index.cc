#include "corpus/dedup/band_index.h"

#include <unistd.h>

#include <algorithm>

#include "corpus/stream/spool.h"

namespace teratron {
namespace {

constexpr std::size_t kEntriesPerWrite = 1024;

}  // namespace

BandIndex::BandIndex(const std::filesystem::path& folder) : folder_(folder), parts_(kParts) {
  for (Part& part : parts_) {
    part.descriptor = open_unnamed_file(folder);
    part.buffer.reserve(kEntriesPerWrite);
  }
}

BandIndex::~BandIndex() {
  for (const Part& part : parts_) ::close(part.descriptor);
}

void BandIndex::add(std::uint64_t hash, std::int64_t document) {
  Part& part = parts_[hash >> 56];
  part.buffer.push_back({hash, document});
  if (part.buffer.size() >= kEntriesPerWrite) flush(part);
}

void BandIndex::flush(Part& part) {
  write_unnamed(part.descriptor, folder_,
                {reinterpret_cast<const char*>(part.buffer.data()), part.buffer.size() * sizeof(Entry)});
  part.entries += std::ssize(part.buffer);
  part.buffer.clear();
}

void BandIndex::end_writing() {
  for (Part& part : parts_) {
    flush(part);
    part.buffer.shrink_to_fit();
  }
}

void BandIndex::for_each_meeting(std::int64_t part, const std::function<void(std::span<const Entry>)>& meeting) const {
  const Part& one = parts_.at(static_cast<std::size_t>(part));
  std::vector<Entry> entries(static_cast<std::size_t>(one.entries));
  read_unnamed(one.descriptor, folder_, 0, {reinterpret_cast<char*>(entries.data()), entries.size() * sizeof(Entry)});
  std::ranges::sort(entries);
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end = std::find_if(begin, entries.end(), [&](const Entry& entry) { return entry.hash != begin->hash; });
    if (end - begin > 1) meeting({begin, end});
    begin = end;
  }
}

}  // namespace teratron
