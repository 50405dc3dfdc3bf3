#include "checkpoint/weights_file.h"

#include <map>
#include <set>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/torch/torch_file.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

class TorchWeights : public WeightsFile {
 public:
  explicit TorchWeights(const fs::path& path) : file_(path) {
    const PickleValue& state = file_.content();
    if (!state.is(PickleKind::kDictionary)) throw_no_state();
    for (std::size_t i = 0; i + 1 < state.items.size(); i += 2) {
      const PickleValue& key = *state.items[i];
      if (!key.is(PickleKind::kText)) throw_no_state();
      add(std::string(key.text), *state.items[i + 1]);
    }
  }

  const fs::path& path() const override { return file_.path(); }
  const std::vector<SafetensorsEntry>& tensors() const override { return tensors_; }
  std::span<const std::byte> bytes(const SafetensorsEntry& tensor) const override {
    const Values& values = values_.at(tensor.name);
    return values.rows.empty() ? values.stored.bytes : values.rows;
  }
  void release(const SafetensorsEntry& tensor) const override { file_.release(values_.at(tensor.name).stored); }

 private:
  struct Values {
    TorchTensor stored;
    std::vector<std::byte> rows;  // of a tensor that is stored in another order than row by row
  };

  [[noreturn]] void throw_no_state() const {
    throw_user_error("'{}' is no dictionary of tensors, as the state of a model is", path().string());
  }

  void add(const std::string& name, const PickleValue& value) {
    const std::optional<TorchTensor> tensor = file_.tensor(value, name);
    if (!tensor)
      throw_user_error("'{}' in '{}' is no tensor, so this is not the state of a model", name, path().string());
    if (!values_.emplace(name, Values{*tensor, {}}).second) {
      throw_user_error("'{}' has the tensor '{}' a second time", path().string(), name);
    }
    if (intact_.insert(tensor->storage).second) file_.require_intact(*tensor);
    if (!tensor->is_contiguous()) {
      file_.pass_on(*tensor, appending_sink(values_.at(name).rows));
    }
    tensors_.push_back(
        {.name = name, .dtype_name = tensor->dtype_name, .dtype = tensor->dtype, .shape = tensor->shape});
  }

  TorchFile file_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string, Values> values_;
  std::set<std::string> intact_;  // storages that were compared with their checksums
};

}  // namespace

std::unique_ptr<WeightsFile> open_weights_file(const fs::path& path) {
  if (path.extension() == ".bin") return std::make_unique<TorchWeights>(path);
  return std::make_unique<SafetensorsFile>(path);
}

}  // namespace teratron
