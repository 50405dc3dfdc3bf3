#include "tokenizer/stream_decoder.h"

#include "base/utf8.h"

namespace teratron {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

}  // namespace

std::string StreamDecoder::push_bytes(std::string_view bytes) {
  pending_.append(bytes);
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = decode_utf8(rest);
    if (step.status == Utf8Status::kUnfinished) break;
    if (step.status == Utf8Status::kValid) {
      out.append(rest.substr(0, step.length));
    } else {
      append_utf8(kReplacement, out);
    }
    rest.remove_prefix(step.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (!pending_.empty()) append_utf8(kReplacement, out);
  pending_.clear();
  return out;
}

}  // namespace teratron
