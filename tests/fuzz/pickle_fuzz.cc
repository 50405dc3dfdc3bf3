// Pickles, each in a file of torch.save with a storage of 64 bytes: tensors among the values lie in it.
#include "checkpoint/torch/torch_file.h"
#include "checkpoint/zip_writer.h"
#include "fuzz.h"

namespace {

// Reads tensors among the values, whatever refers to what; at most so many values.
void read_tensors(const teratron::TorchFile& file, const teratron::PickleValue& value, int& values_left, int depth) {
  constexpr int kDeepest = 20;
  if (depth > kDeepest || --values_left < 0) return;
  if (const auto tensor = file.tensor(value, "a"); tensor && tensor->dtype) {
    unsigned sum = 0;
    file.pass_on(*tensor, [&](std::span<const std::byte> bytes) {
      for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
    });
    teratron::fuzz::require(sum < ~0U, "sums are small");
  }
  for (const teratron::PickleValue* const item : value.items) read_tensors(file, *item, values_left, depth + 1);
}

}  // namespace

void teratron::fuzz::parse(std::string_view input) {
  const std::string storage(64, '\1');
  const TorchFile file(put("a.pt", testing::zip_of({{"a/data.pkl", std::string(input)}, {"a/data/0", storage}})));
  int values_left = 10'000;
  read_tensors(file, file.content(), values_left, 0);
}
