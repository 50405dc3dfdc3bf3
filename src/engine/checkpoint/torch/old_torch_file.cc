#include "checkpoint/torch/old_torch_file.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "checkpoint/torch/storage_types.h"

namespace teratron {
namespace {

// A pickle of the number that torch.save begins with.
constexpr std::string_view kMark = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";

// Bytes of a value of each storage, which the pickle refers to as ("storage", type, key, device, size, view).
std::map<std::string_view, std::int64_t> value_bytes_of(const Pickle& saved, const std::filesystem::path& path) {
  std::map<std::string_view, std::int64_t> bytes;
  for (const PickleValue* const id : saved.persistent_ids()) {
    const std::vector<const PickleValue*>& parts = id->items;
    const bool is_storage = parts.size() >= 6 && parts[1]->is(PickleKind::kName) && parts[2]->is(PickleKind::kText);
    const StorageType* const type = is_storage ? find_storage_type(parts[1]->text) : nullptr;
    if (type == nullptr) {
      throw_user_error("'{}' has a storage of a type that Teratron does not know, so those after it are not found",
                       path.string());
    }
    if (!parts[5]->is(PickleKind::kNone)) {
      throw_user_error("'{}' has storages that are parts of others; save it anew with a PyTorch from 1.6 on",
                       path.string());
    }
    bytes.emplace(parts[2]->text, type->value_bytes);
  }
  return bytes;
}

}  // namespace

bool OldTorchFile::is_one(const MappedFile& file) { return file.text().starts_with(kMark); }

OldTorchFile::OldTorchFile(MappedFile file) : file_(std::move(file)) {
  std::string_view rest = file_.text().substr(kMark.size());
  take_pickle(rest);  // the version, of which there is one
  const auto machine = take_pickle(rest);
  const PickleValue* const is_little = machine->content().find("little_endian");
  if (is_little != nullptr && is_little->integer == 0) {
    throw_user_error("'{}' was written on a machine whose bytes are in the other order", path().string());
  }
  saved_ = take_pickle(rest);
  const auto keys = take_pickle(rest);
  take_storages(rest, keys->content());
}

const std::span<const std::byte>* OldTorchFile::find(std::string_view key) const {
  const auto found = storages_.find(key);
  return found == storages_.end() ? nullptr : &found->second;
}

std::unique_ptr<Pickle> OldTorchFile::take_pickle(std::string_view& rest) const {
  auto pickle = std::make_unique<Pickle>(rest.substr(0, Pickle::kMostBytes), path());
  rest.remove_prefix(pickle->bytes_read());
  return pickle;
}

void OldTorchFile::take_storages(std::string_view rest, const PickleValue& keys) {
  const std::map<std::string_view, std::int64_t> value_bytes = value_bytes_of(*saved_, path());
  for (const PickleValue* const key : keys.items) {
    const auto found = value_bytes.find(key->text);
    std::int64_t count = -1;
    if (rest.size() >= sizeof count) {
      std::memcpy(&count, rest.data(), sizeof count);
      rest.remove_prefix(sizeof count);
    }
    if (found == value_bytes.end() || count < 0 || count > std::ssize(rest) / found->second) {
      throw_user_error("'{}' is cut short or damaged: storage '{}' is not whole", path().string(), key->text);
    }
    const std::string_view bytes = rest.substr(0, static_cast<std::size_t>(count * found->second));
    storages_.emplace(key->text, std::as_bytes(std::span(bytes)));
    rest.remove_prefix(bytes.size());
  }
}

}  // namespace teratron
