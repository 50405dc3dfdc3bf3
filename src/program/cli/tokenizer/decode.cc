// teratron tokenizer decode: token ids of `tokenizer encode` to bytes.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

static_assert(std::endian::native == std::endian::little, "ids are read in this machine's byte order");

struct TokenizerDecodeOptions {
  std::filesystem::path tokenizer, in, out, json;
  bool overwrite = false;

  Faults faults() const {
    Faults faults;
    add_output_faults(faults, "OUT", out, json);
    return faults;
  }
};

FieldList fields_of(TokenizerDecodeOptions& o) {
  FieldList list;
  list.add_positional(&o.in, "IN", "token ids, 4 bytes each, little-endian; -: standard input");
  list.add_positional(&o.out, "OUT", "decoded bytes; -: standard output").writes();
  add_overwrite_field(list, o.overwrite);
  list.add("tokenizer", &o.tokenizer, "DIR", "folder with the tokenizer's files").required = true;
  add_json_field(list, o.json);
  return list;
}

std::vector<std::int32_t> read_ids(const std::filesystem::path& path, std::int64_t vocab_size) {
  const std::string bytes = read_file(path);
  if (bytes.size() % sizeof(std::int32_t) != 0) {
    throw_user_error(
        "{} has {} bytes, which is not a whole number of 4-byte token ids; it is cut short or no such file",
        name_of_input(path), bytes.size());
  }
  std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    throw_user_error("id {} (number {} of {}) is outside the vocabulary of {}; the ids are another tokenizer's",
                     static_cast<std::uint32_t>(ids[i]), i + 1, name_of_input(path), vocab_size);
  }
  return ids;
}

void run(const TokenizerDecodeOptions& options) {
  require_free(std::array{options.out}, options.overwrite);
  require_writable(options.out);
  const OutputLock lock(options.out);
  const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
  const std::vector<std::int32_t> ids = read_ids(options.in, tokenizer.vocab_size());
  const std::string bytes = tokenizer.decode(ids);
  write_file_atomically(options.out, bytes);

  const nlohmann::ordered_json json = {{"tokens", ids.size()}, {"bytes", bytes.size()}};
  report_beside(options.out, options.json,
                fmt::format("{} from {}: {}\n", readable_bytes(bytes.size()), counted(std::ssize(ids), "token"),
                            options.out.string()),
                json);
}

}  // namespace

Command tokenizer_decode_command() {
  return make_command<TokenizerDecodeOptions>("tokenizer decode", "turns token ids back into text", run);
}

}  // namespace teratron
