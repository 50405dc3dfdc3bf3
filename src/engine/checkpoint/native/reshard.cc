#include "checkpoint/native/reshard.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/tensor_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<SafetensorsDeclaration>;

// Distributes the tensors to files, in order; wider types first, as the format requires.
std::vector<Tensors> files_of(const TensorFiles& from, std::uint64_t max_file_bytes) {
  Tensors all;
  for (const SafetensorsEntry& entry : from.entries()) {
    if (!entry.dtype) throw DamagedCheckpoint(fmt::format("tensor '{}' has dtype {}", entry.name, entry.dtype_name));
    all.push_back({entry.name, *entry.dtype, entry.shape});
  }
  std::ranges::stable_sort(all, std::greater<>{}, [](const auto& tensor) { return size_of(tensor.dtype); });
  return distribute(std::move(all), max_file_bytes);
}

// Each tensor is compared with its checksum before it is passed on.
void write_kind(CheckpointWriter& writer, TensorKind kind, const TensorFiles& from, std::uint64_t max_file_bytes) {
  const std::vector<Tensors> files = files_of(from, max_file_bytes);
  for (std::size_t file = 0; file < files.size(); ++file) {
    writer.write_tensors(tensor_file_name(kind, file, files.size()), files[file],
                         [&](std::size_t i, const ByteSink& sink) {
                           const TensorFiles::Location& tensor = from.at(files[file][i].name);
                           tensor.verify();
                           stream(tensor.bytes(), sink);
                           tensor.release();
                         });
  }
}

void copy_other_files(CheckpointWriter& writer, const fs::path& folder, const Manifest& manifest) {
  for (const auto& [name, record] : manifest.files) {
    if (is_tensor_file(name)) continue;
    check_other_file(folder / name, record);
    writer.add_file(name, read_file(folder / name));
  }
}

}  // namespace

ReshardReport reshard_checkpoint(const fs::path& from, const fs::path& to, std::uint64_t max_file_bytes) {
  const fs::path source = find_checkpoint(from);
  const fs::path written = with_advice(source, [&] {
    const Manifest manifest = read_manifest(source);
    check_takes_conversion(to, manifest.state.iteration);
    const TensorFiles model(source, manifest, TensorKind::kModel, /*verify=*/true);
    const TensorFiles optimizer(source, manifest, TensorKind::kOptimizer, /*verify=*/true);
    CheckpointWriter writer(to, manifest.run, manifest.model, manifest.state);
    write_kind(writer, TensorKind::kModel, model, max_file_bytes);
    write_kind(writer, TensorKind::kOptimizer, optimizer, max_file_bytes);
    copy_other_files(writer, source, manifest);
    return writer.publish_as_only();
  });
  ReshardReport report{.folder = written};
  for (const auto& [name, file] : read_manifest(written).files) {
    ++report.files;
    report.tensors += static_cast<std::int64_t>(file.tensors.size());
    report.bytes += file.bytes;
    report.largest_file = std::max(report.largest_file, file.bytes);
  }
  return report;
}

}  // namespace teratron
