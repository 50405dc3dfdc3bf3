#include "checkpoint/tensor_source.h"

#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors_header.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/weights_file.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

SourceTensor tensor_of(const SafetensorsEntry& entry) {
  return {
      .name = entry.name, .dtype = entry.dtype, .dtype_name = entry.dtype_name, .shape = entry.shape, .checksum = {}};
}

class CheckpointTensors final : public TensorSource {
 public:
  explicit CheckpointTensors(const fs::path& folder)
      : manifest_(with_advice(folder, [&] { return read_manifest(folder); })),
        model_(with_advice(folder, [&] { return TensorFiles(folder, manifest_, TensorKind::kModel, true); })),
        optimizer_(with_advice(folder, [&] { return TensorFiles(folder, manifest_, TensorKind::kOptimizer, true); })) {
    path_ = folder;
    for (const TensorFiles* files : {&model_, &optimizer_}) {
      for (const SafetensorsEntry& entry : files->entries()) {
        tensors_.push_back(tensor_of(entry));
        locations_.push_back(&files->at(entry.name));
        tensors_.back().checksum = locations_.back()->record->tensors.at(entry.name);
        tensors_.back().is_of_optimizer = files == &optimizer_;
      }
    }
  }

  void pass_on(std::size_t tensor, const ByteSink& sink) const override {
    with_advice(path_, [&] { locations_[tensor]->verify(); });
    stream(locations_[tensor]->bytes(), sink);
    locations_[tensor]->release();
  }

 private:
  Manifest manifest_;
  TensorFiles model_, optimizer_;
  std::vector<const TensorFiles::Location*> locations_;  // of the tensors
};

class HuggingFaceTensorsOfFolder final : public TensorSource {
 public:
  explicit HuggingFaceTensorsOfFolder(const fs::path& folder) : folder_(folder) {
    path_ = folder;
    for (std::size_t i = 0; i < folder_.parameters().size(); ++i) {
      if (folder_.is_drawn(i)) continue;
      const Parameter& parameter = folder_.parameters()[i];
      const DType dtype = folder_.dtype(i);
      tensors_.push_back({.name = parameter.name,
                          .dtype = dtype,
                          .dtype_name = std::string(safetensors_name(dtype)),
                          .shape = stored_shape(parameter),
                          .checksum = {}});
      parameters_.push_back(i);
    }
  }

  void pass_on(std::size_t tensor, const ByteSink& sink) const override { folder_.pass_on(parameters_[tensor], sink); }

 private:
  HuggingFaceFolder folder_;
  std::vector<std::size_t> parameters_;  // of the tensors
};

class FileTensors final : public TensorSource {
 public:
  explicit FileTensors(const fs::path& file) : file_(open_weights_file(file)) {
    path_ = file;
    for (const SafetensorsEntry& entry : file_->tensors()) tensors_.push_back(tensor_of(entry));
  }

  void pass_on(std::size_t tensor, const ByteSink& sink) const override {
    const SafetensorsEntry& entry = file_->tensors()[tensor];
    stream(file_->bytes(entry), sink);
    file_->release(entry);
  }

 private:
  const std::unique_ptr<WeightsFile> file_;
};

}  // namespace

std::unique_ptr<TensorSource> open_tensors_of(const fs::path& path) {
  if (fs::is_regular_file(path)) return std::make_unique<FileTensors>(path);
  if (find_weights(path).is_hugging_face) return std::make_unique<HuggingFaceTensorsOfFolder>(path);
  return std::make_unique<CheckpointTensors>(find_checkpoint(path));
}

}  // namespace teratron
