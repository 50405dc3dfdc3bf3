// llm.c's model files (gpt2_124M.bin, model_00019560.bin): 256 whole numbers, then the tensors of a GPT-2, those of all
// layers of a kind together, in fp32 (version 3) or bf16 (version 5).
#include <cstring>

#include "base/counted.h"
#include "base/error.h"
#include "checkpoint/foreign/foreign_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kMagic = 20240326, kFloatVersion = 3, kBf16Version = 5;
constexpr std::size_t kHeaderNumbers = 256;
constexpr std::int32_t kMostHiddenSize = 1 << 24;  // the bytes of a tensor then fit 64 bits

struct LlmCHeader {
  std::int32_t magic = 0, version = 0, positions = 0, vocab_size = 0, layers = 0, heads = 0, hidden_size = 0,
               padded_vocab_size = 0;
};

LlmCHeader read_header(const MappedFile& file) {
  LlmCHeader header;
  if (file.bytes().size() >= sizeof header) std::memcpy(&header, file.bytes().data(), sizeof header);
  if (header.magic != kMagic) throw_user_error("'{}' is no model file of llm.c", file.path().string());
  if (header.version != kFloatVersion && header.version != kBf16Version) {
    throw_user_error("'{}' is of version {} of llm.c's model files; versions 3 (fp32) and 5 (bf16) are read",
                     file.path().string(), header.version);
  }
  const bool is_sound = header.positions > 0 && header.vocab_size > 0 && header.layers > 0 && header.heads > 0 &&
                        header.hidden_size > 0 && header.padded_vocab_size >= header.vocab_size &&
                        header.layers <= kMostLayers && header.hidden_size <= kMostHiddenSize;
  if (!is_sound) throw_user_error("'{}' is damaged: its header has sizes that no model has", file.path().string());
  return header;
}

// Tensors of a kind, one for each layer or one for the model.
struct LlmCKind {
  const char* name;
  bool is_of_layer;
  std::vector<std::int64_t> shape;
  std::int64_t rows = 0;  // with those that pad the vocabulary
};

std::vector<LlmCKind> kinds_of(const LlmCHeader& header) {
  const std::int64_t h = header.hidden_size;
  return {{"transformer.wte.weight", false, {header.vocab_size, h}, header.padded_vocab_size},
          {"transformer.wpe.weight", false, {header.positions, h}},
          {"ln_1.weight", true, {h}},
          {"ln_1.bias", true, {h}},
          {"attn.c_attn.weight", true, {3 * h, h}},
          {"attn.c_attn.bias", true, {3 * h}},
          {"attn.c_proj.weight", true, {h, h}},
          {"attn.c_proj.bias", true, {h}},
          {"ln_2.weight", true, {h}},
          {"ln_2.bias", true, {h}},
          {"mlp.c_fc.weight", true, {4 * h, h}},
          {"mlp.c_fc.bias", true, {4 * h}},
          {"mlp.c_proj.weight", true, {h, 4 * h}},
          {"mlp.c_proj.bias", true, {h}},
          {"transformer.ln_f.weight", false, {h}},
          {"transformer.ln_f.bias", false, {h}}};
}

}  // namespace

ForeignWeights read_llm_c(const fs::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const LlmCHeader header = read_header(*file);
  ForeignWeights weights{.model = {.num_layers = header.layers,
                                   .hidden_size = header.hidden_size,
                                   .num_attention_heads = header.heads,
                                   .vocab_size = header.vocab_size,
                                   .max_position_embeddings = header.positions,
                                   .hidden_dropout = 0,  // which it does not have
                                   .attention_dropout = 0},
                         .tensors = {},
                         .mapping = &nanogpt_mapping()};
  const DType dtype = header.version == kFloatVersion ? DType::kF32 : DType::kBF16;
  std::uint64_t at = kHeaderNumbers * sizeof(std::int32_t);
  const std::uint64_t size = file->bytes().size();
  for (const LlmCKind& kind : kinds_of(header)) {
    const std::int64_t row = (kind.shape.size() > 1 ? kind.shape[1] : 1) * size_of(dtype);
    const auto bytes = static_cast<std::uint64_t>(kind.shape[0] * row),
               stored = static_cast<std::uint64_t>((kind.rows == 0 ? kind.shape[0] : kind.rows) * row);
    for (std::int64_t layer = 0; layer < (kind.is_of_layer ? header.layers : 1); ++layer, at += stored) {
      if (at > size || stored > size - at) {
        throw_user_error("'{}' is cut short: it has {}, fewer than its model", path.string(),
                         counted(static_cast<std::int64_t>(size), "byte"));
      }
      const auto part = file->bytes().subspan(at, bytes);
      const std::string name = kind.is_of_layer ? fmt::format("transformer.h.{}.{}", layer, kind.name) : kind.name;
      weights.tensors[name] = {.dtype = dtype,
                               .dtype_name = dtype == DType::kF32 ? "F32" : "BF16",
                               .shape = kind.shape,
                               .pass_on = [file, part](const ByteSink& sink) { stream(part, sink); }};
    }
  }
  if (at != size) {
    throw_user_error("'{}' is {} longer than its model", path.string(),
                     counted(static_cast<std::int64_t>(size - at), "byte"));
  }
  return weights;
}

}  // namespace teratron
