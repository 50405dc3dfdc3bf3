#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/threads.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/bpe_files.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/splitter.h"

namespace teratron {
namespace {

// Encoders at rest. A call takes one and gives it back, so the caches stay warm from call to call, and there are as
// many as calls that ran at the same time.
class EncoderPool {
 public:
  std::unique_ptr<BpeEncoder> take(const MergeTable& table) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<BpeEncoder>(table);
    std::unique_ptr<BpeEncoder> encoder = std::move(idle_.back());
    idle_.pop_back();
    return encoder;
  }
  void give_back(std::unique_ptr<BpeEncoder> encoder) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(encoder));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BpeEncoder>> idle_;
};

}  // namespace

struct Tokenizer::State {
  explicit State(BpeModel bpe) : model(std::move(bpe)), table(model), special(model) {}

  BpeModel model;
  MergeTable table;
  SpecialTokens special;
  mutable EncoderPool encoders;
};

Tokenizer Tokenizer::load(const std::filesystem::path& folder_or_file) {
  return Tokenizer(read_bpe_model(folder_or_file));
}

Tokenizer::Tokenizer(BpeModel model) {
  validate(model, "tokenizer");
  state_ = std::make_shared<const State>(std::move(model));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialText special) const {
  std::vector<std::int32_t> ids;
  encode_to(text, ids, special);
  return ids;
}

void Tokenizer::encode_to(std::string_view text, std::vector<std::int32_t>& out, SpecialText special) const {
  std::unique_ptr<BpeEncoder> encoder = state_->encoders.take(state_->table);
  if (special == SpecialText::kToken) {
    while (const auto match = state_->special.find(text)) {
      encoder->encode(text.substr(0, match->position), out);
      out.push_back(match->id);
      text.remove_prefix(match->position + match->length);
    }
  }
  encoder->encode(text, out);
  state_->encoders.give_back(std::move(encoder));
}

std::vector<std::int32_t> Tokenizer::encode_parallel(std::string_view text) const {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = next_safe_cut(text, std::min(begin + kPart, text.size()));
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  std::vector<std::vector<std::int32_t>> ids(parts.size());
  parallel_for(std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) encode_to(parts[i], ids[i]);
  });
  std::size_t total = 0;
  for (const auto& part : ids) total += part.size();
  std::vector<std::int32_t> out;
  out.reserve(total);
  for (const auto& part : ids) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) bytes += bytes_of(id);
  return bytes;
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) {
    throw_user_error("token id {} is outside the vocabulary of {} tokens; were the ids made with another tokenizer?",
                     id, vocab_size());
  }
  return state_->model.tokens[static_cast<std::size_t>(id)];
}

std::int64_t Tokenizer::vocab_size() const { return std::ssize(state_->model.tokens); }

std::optional<std::int32_t> Tokenizer::end_of_text() const { return special_token(kEndOfText); }

std::optional<std::int32_t> Tokenizer::special_token(std::string_view text) const {
  return state_->special.id_of(text);
}

const BpeModel& Tokenizer::model() const { return state_->model; }

std::string Tokenizer::hash() const { return hash_of(state_->model); }

void Tokenizer::save(const std::filesystem::path& folder) const {
  make_folders(folder);
  write_bpe_model(state_->model, folder);
}

}  // namespace teratron
