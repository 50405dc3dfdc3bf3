// safetensors: the header alone, and a file whose bytes are all read.
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/safetensors_header.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  try {
    parse_safetensors_header(input, "a.safetensors");
  } catch (const UserError&) {
  }
  const SafetensorsFile file(put("a.safetensors", input));
  unsigned sum = 0;
  for (const SafetensorsEntry& tensor : file.tensors()) {
    for (const std::byte byte : file.bytes(tensor)) sum += std::to_integer<unsigned>(byte);
    require(file.find(tensor.name) == &tensor, "a tensor is found by its name");
  }
  require(sum < ~0U, "sums are small");
}
