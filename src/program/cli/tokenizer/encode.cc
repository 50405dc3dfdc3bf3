// teratron tokenizer encode: text to token ids, written as little-endian 32-bit integers, or as lines for people.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/files/decompression.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "base/json_string.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/threads_field.h"
#include "console/readable.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

static_assert(std::endian::native == std::endian::little, "AtomicFile::write_values writes this machine's byte order");

struct TokenizerEncodeOptions {
  std::filesystem::path tokenizer, in, out, json;
  bool overwrite = false, as_text = false;
  std::int64_t threads = 0;

  Faults faults() const {
    Faults faults;
    add_output_faults(faults, "OUT", out, json);
    return faults;
  }
};

FieldList fields_of(TokenizerEncodeOptions& o) {
  FieldList list;
  list.add_positional(
      &o.in, "IN",
      "text, plain or compressed (gzip, zstd), taken as it is: JSON, tables and byte order marks, too, are "
      "text here; -: standard input");
  list.add_positional(&o.out, "OUT", "its token ids, 4 bytes each, little-endian; -: standard output").writes();
  add_overwrite_field(list, o.overwrite);
  list.add("tokenizer", &o.tokenizer, "DIR", "folder with the tokenizer's files").required = true;
  list.add("as-text", &o.as_text, "",
           "write a line for each token, its id and its text as a JSON string; bytes that are no UTF-8 show as U+FFFD");
  add_threads_field(list, o.threads);
  add_json_field(list, o.json);
  return list;
}

void write_lines(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, AtomicFile& out) {
  for (const std::int32_t id : ids) {
    const nlohmann::json text = tokenizer.bytes_of(id);
    out.write(fmt::format("{} {}\n", id, json_text(text)));
  }
}

void run(const TokenizerEncodeOptions& options) {
  use_threads(options.threads);
  require_free(std::array{options.out}, options.overwrite);
  require_writable(options.out);
  const OutputLock lock(options.out);
  const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
  const std::string text = read_decompressed(options.in);
  const double start = monotonic_seconds();
  const std::vector<std::int32_t> ids = tokenizer.encode_parallel(text);
  const double seconds = monotonic_seconds() - start;
  AtomicFile out(options.out);
  if (options.as_text) {
    write_lines(tokenizer, ids, out);
  } else {
    out.write_values<std::int32_t>(ids);
  }
  out.commit();

  const nlohmann::ordered_json json = {{"bytes", text.size()}, {"tokens", ids.size()}, {"seconds", seconds}};
  report_beside(options.out, options.json,
                fmt::format("{} from {} in {}: {}\n", counted(std::ssize(ids), "token"), readable_bytes(text.size()),
                            readable_duration(seconds), options.out.string()),
                json);
}

}  // namespace

Command tokenizer_encode_command() {
  return make_command<TokenizerEncodeOptions>("tokenizer encode", "turns text into token ids", run);
}

}  // namespace teratron
