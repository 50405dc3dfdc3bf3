// Megatron-LM's .idx beside a .bin, whose size is the input's last two bytes.
#include <array>
#include <span>

#include "data/indexed/dataset_info.h"
#include "data/indexed/indexed_dataset.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  std::size_t size = 0;
  for (int i = 0; i < 2 && !input.empty(); ++i, input.remove_suffix(1)) {
    size = size * 256 + static_cast<unsigned char>(input.back());
  }
  put("a.bin", std::string(size, '\1'));
  put("a.idx", input);
  const std::vector<std::filesystem::path> prefixes = {folder() / "a"};
  const IndexedDataset dataset = IndexedDataset::open(prefixes);
  std::array<std::int32_t, 3> ids{};
  for (std::int64_t document = 0; document < dataset.documents(); ++document) {
    const TokenRange range = dataset.document(document);
    require(0 <= range.begin && range.begin <= range.end && range.end <= dataset.tokens(),
            "documents are in the corpus");
    if (range.size() >= 3) dataset.read(range.begin, ids);
  }
  for (std::int64_t sequence = 0; sequence < dataset.sequences(); ++sequence) dataset.sequence(sequence);
  dataset_info(prefixes);
}
