#include "data/indexed/dataset_info.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/host/threads.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {
namespace {

std::int32_t largest_token(const IndexedDataset& dataset, const std::function<void(double)>& progress) {
  constexpr std::int64_t kGrain = 1 << 18;
  std::vector<std::int32_t> largest(static_cast<std::size_t>((dataset.tokens() + kGrain - 1) / kGrain), -1);
  std::atomic<std::int64_t> done{0};
  parallel_for(dataset.tokens(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(end - begin));
    dataset.read(begin, tokens);
    largest[static_cast<std::size_t>(begin / kGrain)] = *std::ranges::max_element(tokens);
    done += end - begin;
    if (progress) progress(static_cast<double>(done) / static_cast<double>(dataset.tokens()));
  });
  return largest.empty() ? -1 : *std::ranges::max_element(largest);
}

bool has_pair(const IndexedDataset& dataset, std::int64_t document) {
  std::int64_t found = 0;
  const std::int64_t end = dataset.first_sequence(document + 1);
  for (std::int64_t at = dataset.first_sequence(document); at < end && found < 2; ++at) {
    found += dataset.sequence(at).size() > 0 ? 1 : 0;
  }
  return found == 2;
}

}  // namespace

DatasetInfo dataset_info(std::span<const std::filesystem::path> prefixes,
                         const std::function<void(double share)>& progress) {
  const IndexedDataset dataset = IndexedDataset::open(prefixes);
  DatasetInfo info{.shards = static_cast<std::int64_t>(prefixes.size()),
                   .documents = dataset.documents(),
                   .sequences = dataset.sequences(),
                   .tokens = dataset.tokens()};
  for (const IndexedShard& shard : dataset.shards()) {
    if (std::ranges::count(info.token_types, shard.token_type()) == 0) info.token_types.push_back(shard.token_type());
    info.bin_bytes += static_cast<std::int64_t>(std::filesystem::file_size(bin_path(shard.prefix())));
    info.idx_bytes += static_cast<std::int64_t>(std::filesystem::file_size(idx_path(shard.prefix())));
  }
  info.sidecar = read_sidecar(prefixes.front());
  info.largest_token = largest_token(dataset, progress);
  if (info.documents == 0) return info;

  std::vector<std::int64_t> sizes(static_cast<std::size_t>(info.documents));
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = dataset.document(static_cast<std::int64_t>(i)).size();
  const auto middle = sizes.begin() + info.documents / 2;
  std::ranges::nth_element(sizes, middle);
  info.median_document = *middle;
  info.shortest_document = *std::min_element(sizes.begin(), middle + 1);
  info.longest_document = *std::max_element(middle, sizes.end());
  info.empty_documents = std::ranges::count(sizes, 0);
  for (std::int64_t i = 0; i < info.documents; ++i) info.documents_of_pairs += has_pair(dataset, i) ? 1 : 0;
  return info;
}

}  // namespace teratron
