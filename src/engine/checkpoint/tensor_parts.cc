#include "checkpoint/tensor_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/round_up.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

// A parameter's tensors are handled as [rows, columns]; those of one axis have one column.
TensorRef as_matrix(const TensorRef& view) {
  return view.shape.rank() == 1 ? view.reshape({view.elements(), 1}) : view;
}

std::int64_t whole_columns(const Parameter& parameter) {
  const Shape global = parameter.global_shape();
  return global.rank() == 1 ? 1 : global[1];
}

std::int64_t rows_at_a_time(std::int64_t row_bytes, std::size_t bytes = kPieceBytes) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes) / row_bytes);
}

// Calls use(begin, end) for the runs of the stored tensor's rows that are handled at a time.
template <class Use>
void for_each_piece(const Parameter& parameter, DType dtype, const Use& use, std::size_t bytes = kPieceBytes) {
  const std::int64_t rows = parameter.global_shape()[0] - parameter.padding_rows;
  const std::int64_t step = rows_at_a_time(whole_columns(parameter) * size_of(dtype), bytes);
  for (std::int64_t begin = 0; begin < rows; begin += step) use(begin, std::min(rows, begin + step));
}

std::int64_t piece_bytes(const Parameter& parameter, DType dtype) {
  std::int64_t most = 0;
  for_each_piece(parameter, dtype, [&](std::int64_t begin, std::int64_t end) { most = std::max(most, end - begin); });
  return most * whole_columns(parameter) * size_of(dtype);
}

// Pieces of the whole tensor's rows [begin, end) that lie in a part.
std::vector<ParameterPiece> pieces_within(const Parameter& parameter, int part, std::int64_t begin, std::int64_t end) {
  std::vector<ParameterPiece> within;
  for (ParameterPiece piece : pieces_of(parameter, part)) {
    const std::int64_t first = std::max(begin, piece.global_row), last = std::min(end, piece.global_row + piece.rows);
    if (first >= last) continue;
    piece.local_row += first - piece.global_row;
    piece.global_row = first;
    piece.rows = last - first;
    within.push_back(piece);
  }
  return within;
}

// Copies rows of `row_bytes` that are `to_stride` and `from_stride` bytes apart.
void copy_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
               std::int64_t rows, std::int64_t row_bytes) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(row_bytes));
  }
}

// Rank 0's side of gather_tensor.
class Gathering {
 public:
  Gathering(const Parameter& parameter, TensorRef part, Backend& backend, Communicator& group)
      : parameter_(parameter),
        part_(part),
        backend_(backend),
        group_(group),
        element_(size_of(part.dtype)),
        row_bytes_(whole_columns(parameter) * element_) {}

  std::int64_t row_bytes() const { return row_bytes_; }

  // The whole's rows [begin, end).
  std::span<const std::byte> rows(std::int64_t begin, std::int64_t end) {
    whole_.resize(static_cast<std::size_t>((end - begin) * row_bytes_));
    put_rows(begin, end, whole_.data());
    return whole_;
  }

  void put_rows(std::int64_t begin, std::int64_t end, std::byte* to) {
    if (lies_whole(parameter_)) return backend_.download(to, part_.slice(0, begin, end));
    for (int part = 0; part < parameter_.group.size; ++part) {
      for (const ParameterPiece& piece : pieces_within(parameter_, part, begin, end)) {
        const std::int64_t bytes = piece.columns * element_;
        piece_.resize(static_cast<std::size_t>(piece.rows * bytes));
        backend_.download(piece_.data(), device_rows(part * parameter_.replicas, piece));
        copy_rows(to + (piece.global_row - begin) * row_bytes_ + piece.global_column * element_, row_bytes_,
                  piece_.data(), bytes, piece.rows, bytes);
      }
    }
  }

 private:
  TensorRef device_rows(int rank, const ParameterPiece& piece) {
    if (rank == 0) return part_.slice(0, piece.local_row, piece.local_row + piece.rows);
    const Shape shape{piece.rows, piece.columns};
    if (received_.bytes() < shape.elements() * element_) received_ = Buffer(backend_, shape.elements() * element_);
    const TensorRef view = received_.view(part_.dtype, shape);
    group_.start_receive(view, rank).wait();
    return view;
  }

  const Parameter& parameter_;
  TensorRef part_;
  Backend& backend_;
  Communicator& group_;
  std::int64_t element_, row_bytes_;
  std::vector<std::byte> whole_, piece_;
  Buffer received_;
};

}  // namespace

void gather_tensor(const Parameter& parameter, TensorRef part, Backend& backend, Communicator& tensor_group,
                   const ByteSink& sink) {
  check(static_cast<bool>(part), "a tensor that is saved has memory");
  part = as_matrix(part);
  Gathering gathering(parameter, part, backend, tensor_group);
  // A tensor that crosses neither ranks nor stages nor a bus is passed on while a core's cache has it.
  const bool stays_here = lies_whole(parameter) && parameter.stage == 0 && backend.is_host_memory();
  const std::size_t bytes = stays_here ? kPieceBytes / 16 : kPieceBytes;
  for_each_piece(
      parameter, part.dtype,
      [&](std::int64_t begin, std::int64_t end) {
        if (tensor_group.rank() == 0) {
          sink(gathering.rows(begin, end));
        } else if (parameter.counts()) {
          for (const ParameterPiece& piece : pieces_within(parameter, parameter.group.rank, begin, end)) {
            tensor_group.start_send(part.slice(0, piece.local_row, piece.local_row + piece.rows), 0).wait();
          }
        }
      },
      bytes);
}

void gather_tensor(const Parameter& parameter, TensorRef part, Backend& backend, Communicator& tensor_group,
                   std::span<std::byte> whole) {
  check(static_cast<bool>(part), "a tensor that is saved has memory");
  part = as_matrix(part);
  Gathering gathering(parameter, part, backend, tensor_group);
  // Parts of other ranks come in pieces. A whole tensor of this rank is one: all threads of the back end copy it.
  for_each_piece(
      parameter, part.dtype,
      [&](std::int64_t begin, std::int64_t end) {
        gathering.put_rows(begin, end, whole.data() + begin * gathering.row_bytes());
      },
      lies_whole(parameter) ? whole.size() : kPieceBytes);
}

ByteSink sending_pieces(const Parameter& parameter, DType dtype, Backend& backend, Communicator& pipeline) {
  const auto buffer = std::make_shared<Buffer>(backend, piece_bytes(parameter, dtype));
  return [buffer, dtype, &backend, &pipeline](std::span<const std::byte> piece) {
    const TensorRef view = buffer->view(dtype, {static_cast<std::int64_t>(piece.size()) / size_of(dtype)});
    backend.upload(view, piece.data());
    pipeline.start_send(view, 0).wait();
  };
}

void receive_pieces(const Parameter& parameter, DType dtype, Backend& backend, Communicator& pipeline,
                    const ByteSink& sink) {
  const Buffer buffer(backend, piece_bytes(parameter, dtype));
  std::vector<std::byte> bytes;
  for_each_piece(parameter, dtype, [&](std::int64_t begin, std::int64_t end) {
    const TensorRef view = buffer.view(dtype, {(end - begin) * whole_columns(parameter)});
    pipeline.start_receive(view, parameter.stage).wait();
    bytes.resize(static_cast<std::size_t>(view.bytes()));
    backend.download(bytes.data(), view);
    sink(bytes);
  });
}

namespace {

void require_values_fit(const Parameter& parameter, std::span<const float> values, DType tiles) {
  for (const float value : values) {
    if (std::abs(value) <= largest_in(tiles)) continue;
    if (!std::isfinite(value)) throw_user_error("{} has a value that is not finite", parameter.name);
    throw_user_error("{} has the value {:.6g}, and {} holds {:.6g} at most; take whole weights", parameter.name, value,
                     name_of(tiles), largest_in(tiles));
  }
}

// load_tensor_part() of a matrix in tiles: as many rows of the part at a time as are whole tiles.
void load_tiles(const Parameter& parameter, TensorRef part, Backend& backend, std::span<const std::byte> whole,
                DType dtype) {
  const std::int64_t rows = parameter.shape[0], columns = parameter.shape[1], element = size_of(dtype);
  const std::int64_t whole_row = whole_columns(parameter) * element, row_bytes = columns * element;
  const std::int64_t step = round_up(rows_at_a_time(columns * size_of(DType::kF32)), kTileRows);
  const std::vector<ParameterPiece> pieces = pieces_of(parameter, parameter.group.rank);
  std::vector<std::byte> stored, tiles;
  std::vector<float> values;
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const std::int64_t end = std::min(rows, begin + step);
    stored.assign(static_cast<std::size_t>((end - begin) * row_bytes), std::byte{0});  // padding rows stay zero
    for (const ParameterPiece& piece : pieces) {
      const std::int64_t first = std::max(begin, piece.local_row), last = std::min(end, piece.local_row + piece.rows);
      if (first >= last) continue;
      const std::int64_t from = (piece.global_row + first - piece.local_row) * whole_row;
      copy_rows(stored.data() + (first - begin) * row_bytes, row_bytes,
                whole.data() + from + piece.global_column * element, whole_row, last - first, row_bytes);
    }
    values.resize(static_cast<std::size_t>((end - begin) * columns));
    convert_floats(std::as_writable_bytes(std::span(values)), DType::kF32, stored, dtype);
    require_values_fit(parameter, values, part.dtype);
    const TensorRef there = part.slice(0, begin / kTileRows, (end + kTileRows - 1) / kTileRows);
    tiles.resize(static_cast<std::size_t>(there.bytes()));
    encode_tiles(part.dtype, values, columns, tiles);
    backend.upload(there, tiles.data());
  }
}

}  // namespace

void load_tensor_part(const Parameter& parameter, TensorRef part, Backend& backend, std::span<const std::byte> whole,
                      DType dtype) {
  check(static_cast<bool>(part), "a tensor that is loaded has memory");
  part = as_matrix(part);
  const std::int64_t element = size_of(dtype), row_bytes = whole_columns(parameter) * element;
  const std::int64_t stored_rows = parameter.global_shape()[0] - parameter.padding_rows;
  check_equal(static_cast<std::int64_t>(whole.size()), stored_rows * row_bytes, "bytes of the stored tensor");
  if (is_tiles(part.dtype)) return load_tiles(parameter, part, backend, whole, dtype);
  if (parameter.padding_rows > 0) backend.fill_zero(part);
  // Uploaded from memory of our own: aligned, contiguous, and of the parameter's type.
  std::vector<std::byte> rows, converted;
  for (const ParameterPiece& piece : pieces_of(parameter, parameter.group.rank)) {
    const std::int64_t bytes = piece.columns * element, step = rows_at_a_time(bytes);
    for (std::int64_t done = 0; done < piece.rows; done += step) {
      const std::int64_t count = std::min(step, piece.rows - done);
      rows.resize(static_cast<std::size_t>(count * bytes));
      copy_rows(rows.data(), bytes,
                whole.data() + (piece.global_row + done) * row_bytes + piece.global_column * element, row_bytes, count,
                bytes);
      converted.resize(static_cast<std::size_t>(count * piece.columns * size_of(part.dtype)));
      convert_floats(converted, part.dtype, rows, dtype);
      const std::int64_t first = piece.local_row + done;
      backend.upload(part.slice(0, first, first + count), converted.data());
    }
  }
}

}  // namespace teratron
