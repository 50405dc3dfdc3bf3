// Zip archives, whose entries are all read.
#include "checkpoint/torch/zip_file.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const ZipFile file(put("a.zip", input));
  for (const auto& [name, entry] : file.entries()) file.require_intact(name);
}
