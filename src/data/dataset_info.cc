#include "data/dataset_info.h"

#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "data/indexed_dataset.h"

namespace teratron {
namespace {

std::int32_t largest_token(const IndexedDataset& dataset) {
  constexpr std::int64_t kGrain = 1 << 18;
  std::vector<std::int32_t> largest(static_cast<std::size_t>((dataset.tokens() + kGrain - 1) / kGrain), -1);
  parallel_for(dataset.tokens(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(end - begin));
    dataset.read(begin, tokens);
    largest[static_cast<std::size_t>(begin / kGrain)] = *std::ranges::max_element(tokens);
  });
  return largest.empty() ? -1 : *std::ranges::max_element(largest);
}

}  // namespace

DatasetInfo dataset_info(const std::filesystem::path& prefix) {
  const IndexedDataset dataset = IndexedDataset::open(prefix);
  DatasetInfo info{.token_type = dataset.token_type(),
                   .documents = dataset.documents(),
                   .sequences = dataset.sequences(),
                   .tokens = dataset.tokens(),
                   .bin_bytes = static_cast<std::int64_t>(std::filesystem::file_size(bin_path(prefix))),
                   .idx_bytes = static_cast<std::int64_t>(std::filesystem::file_size(idx_path(prefix)))};
  info.sidecar = read_sidecar(prefix);
  info.largest_token = largest_token(dataset);
  if (info.documents == 0) return info;

  std::vector<std::int64_t> sizes(static_cast<std::size_t>(info.documents));
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = dataset.document(static_cast<std::int64_t>(i)).size();
  const auto middle = sizes.begin() + info.documents / 2;
  std::ranges::nth_element(sizes, middle);
  info.median_document = *middle;
  info.shortest_document = *std::min_element(sizes.begin(), middle + 1);
  info.longest_document = *std::max_element(middle, sizes.end());
  info.empty_documents = std::ranges::count(sizes, 0);
  return info;
}

}  // namespace teratron
