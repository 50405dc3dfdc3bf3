// checkpoint.json under a right checksum: what is read is written and read again.
#include "base/files/checksum.h"
#include "checkpoint/native/manifest.h"
#include "fuzz.h"

namespace {

std::string with_checksum(std::string_view rest) {
  return "{\"xxh3_64\": \"" + teratron::checksum_of(rest) + "\",\n" + std::string(rest);
}

}  // namespace

void teratron::fuzz::parse(std::string_view input) {
  put("checkpoint.json", with_checksum(input));
  const Manifest first = read_manifest(folder());
  write_manifest(folder(), first);
  const Manifest second = read_manifest(folder());
  require(first.files == second.files && first.run == second.run, "a manifest reads back");
}
