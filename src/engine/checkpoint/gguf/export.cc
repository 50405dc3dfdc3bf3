#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "checkpoint/gguf/encoding.h"
#include "checkpoint/gguf/gguf.h"
#include "checkpoint/gguf/gguf_model.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/whole_checkpoint.h"
#include "checkpoint/stored_tensor.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// The rows of one piece, which come in order and in parts of any size, on their way to the file.
class PieceRows {
 public:
  PieceRows(const GgufPiece& piece, std::size_t row_bytes, ByteSink sink)
      : left_(static_cast<std::size_t>(piece.rows) * row_bytes),
        head_bytes_(static_cast<std::size_t>(piece.paired_rows) * row_bytes),
        paired_rows_(piece.paired_rows),
        sink_(std::move(sink)) {}

  std::size_t left() const { return left_; }

  void take(std::span<const std::byte> bytes) {
    left_ -= bytes.size();
    if (paired_rows_ == 0) return sink_(bytes);
    while (!bytes.empty()) {
      const std::size_t now = std::min(bytes.size(), head_bytes_ - head_.size());
      head_.insert(head_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(now));
      bytes = bytes.subspan(now);
      if (head_.size() < head_bytes_) return;
      stream_transposed(head_, 2, paired_rows_ / 2, sink_);
      head_.clear();
    }
  }

 private:
  std::size_t left_, head_bytes_;
  std::int64_t paired_rows_;
  ByteSink sink_;
  std::vector<std::byte> head_;
};

// Passes `parameter` on once to the pieces that follow each other in it.
template <class Weights>
void write_pieces(const Weights& weights, const GgufModel& model, std::span<const GgufPiece> pieces, GgufWriter& file) {
  const std::size_t parameter = pieces.front().parameter;
  const DType dtype = weights.dtype(parameter);
  const std::vector<std::int64_t> shape = stored_shape(weights.parameters()[parameter]);
  const auto columns = static_cast<std::size_t>(shape.size() == 1 ? 1 : shape[1]);
  std::vector<PieceRows> rows;
  for (const GgufPiece& piece : pieces) {
    const auto write = [&](std::span<const std::byte> bytes) { file.write(bytes); };
    rows.emplace_back(piece, columns * static_cast<std::size_t>(size_of(dtype)),
                      encoding_sink(dtype, model.tensors[piece.tensor].type, write));
  }
  std::size_t current = 0;
  weights.pass_on(parameter, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      while (rows.at(current).left() == 0) ++current;
      const std::size_t now = std::min(bytes.size(), rows[current].left());
      rows[current].take(bytes.first(now));
      bytes = bytes.subspan(now);
    }
  });
}

// UserError where a value of the pieces is not finite, or larger than its tensor's type holds.
template <class Weights>
void require_values_fit(const Weights& weights, const GgufModel& model, const fs::path& in) {
  for (const GgufPiece& piece : model.pieces) {
    if (piece.first_row > 0) continue;  // of a parameter that was looked at
    const GgufType type = model.tensors[piece.tensor].type;
    const std::string& name = weights.parameters()[piece.parameter].name;
    const double most = largest_of(type);
    std::vector<double> values;
    weights.pass_on(piece.parameter,
                    converting_sink(weights.dtype(piece.parameter), DType::kF64, [&](std::span<const std::byte> bytes) {
                      values.resize(bytes.size() / sizeof(double));
                      std::memcpy(values.data(), bytes.data(), bytes.size());
                      for (const double value : values) {
                        if (std::abs(value) <= most) continue;
                        if (!std::isfinite(value))
                          throw_user_error("'{}': {} has a value that is not finite", in.string(), name);
                        throw_user_error("'{}': {} has the value {:.6g}, and {} holds {:.6g} at most", in.string(),
                                         name, value, name_of(type), most);
                      }
                    }));
  }
}

template <class Weights>
std::vector<std::string> write_gguf(const Weights& weights, const fs::path& in, const fs::path& out, GgufType type,
                                    const GgufMetadata& tokenizer) {
  GgufModel model = gguf_model(weights.model(), weights.parameters(), type);
  require_values_fit(weights, model, in);
  model.metadata.insert(model.metadata.end(), tokenizer.begin(), tokenizer.end());
  GgufWriter file(out, model.metadata, model.tensors);
  std::span<const GgufPiece> left = model.pieces;
  while (!left.empty()) {
    std::size_t count = 1;
    while (count < left.size() && left[count].parameter == left[0].parameter && left[count].first_row > 0) ++count;
    write_pieces(weights, model, left.first(count), file);
    left = left.subspan(count);
  }
  file.write(std::as_bytes(std::span(model.frequency_divisors)));
  file.commit();
  return model.notes;
}

}  // namespace

std::vector<std::string> export_to_gguf(GgufSource source, const fs::path& in, const fs::path& out, GgufType type,
                                        const GgufMetadata& tokenizer) {
  if (source == GgufSource::kHuggingFace) return write_gguf(HuggingFaceFolder(in), in, out, type, tokenizer);
  const WholeCheckpoint whole(in);
  static_cast<void>(gguf_model(whole.model(), whole.parameters(), type));  // refuses before checksums are compared
  whole.require_intact();
  return write_gguf(whole, in, out, type, tokenizer);
}

}  // namespace teratron
