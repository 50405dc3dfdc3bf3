// Folders of Hugging Face's models, read and changed tensor by tensor.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct FileTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
  bool operator==(const FileTensor&) const = default;
};
using FileTensors = std::map<std::string, FileTensor>;

inline FileTensors tensors_of(const fs::path& path) {
  FileTensors tensors;
  const SafetensorsFile file(path);
  for (const SafetensorsEntry& entry : file.tensors()) {
    const auto bytes = file.bytes(entry);
    tensors[entry.name] = {entry.dtype_name, entry.shape, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  }
  return tensors;
}

inline DType dtype_of(const std::string& name) {
  return name == "F64" ? DType::kF64 : name == "F32" ? DType::kF32 : name == "BF16" ? DType::kBF16 : DType::kF16;
}

inline void write_tensors(const fs::path& path, const FileTensors& tensors) {
  std::vector<SafetensorsDeclaration> declarations;
  for (const auto& [name, tensor] : tensors) declarations.push_back({name, dtype_of(tensor.dtype), tensor.shape});
  SafetensorsWriter file(path, declarations);
  for (const auto& [name, tensor] : tensors) file.write(name, std::as_bytes(std::span(tensor.bytes)));
  file.commit();
}

// A copy of a model's folder, changed.
inline void make_variant(const fs::path& golden, const fs::path& folder,
                         const std::function<void(Json&)>& change_config,
                         const std::function<void(FileTensors&)>& change_tensors) {
  make_folders(folder);
  Json config = Json::parse(bytes_of_file(golden / "config.json"));
  FileTensors tensors = tensors_of(golden / "model.safetensors");
  change_config(config);
  change_tensors(tensors);
  put_file(folder / "config.json", config.dump());
  write_tensors(folder / "model.safetensors", tensors);
}

// Message of the import of such a copy, which writes nothing.
inline std::string refusal(const fs::path& golden, const std::function<void(Json&)>& change_config,
                           const std::function<void(FileTensors&)>& change_tensors) {
  const TemporaryFolder folder;
  make_variant(golden, folder / "hf", change_config, change_tensors);
  const std::string message = message_of<UserError>([&] { import_from_hugging_face(folder / "hf", folder / "out"); });
  EXPECT_FALSE(fs::exists(folder / "out")) << "nothing is written for a model that is refused";
  return message;
}

}  // namespace teratron::testing
