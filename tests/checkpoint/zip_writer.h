// Zip archives of stored entries, written as tests need them; and the files of torch.save made of them.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron::testing {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct ZipOptions {
  bool in_64 = false;  // sizes and places are in fields of ZIP64
  std::uint16_t flags = 0, method = 0;
  std::string comment;  // of the archive
};

using ZipEntries = std::vector<std::pair<std::string, std::string>>;  // names and bytes

inline std::string zip_of(const ZipEntries& entries, const ZipOptions& options = {}) {
  const auto u16 = [](std::size_t value) { return little(static_cast<std::uint16_t>(value)); };
  const auto u32 = [&](std::size_t value) { return little(static_cast<std::uint32_t>(value)); };
  const auto u64 = [](std::size_t value) { return little(static_cast<std::uint64_t>(value)); };
  const auto short_of = [&](std::size_t value) { return u32(options.in_64 ? 0xffffffff : value); };
  std::string bytes, directory;
  for (const auto& [name, content] : entries) {
    const std::string before = u16(20) + u16(options.flags) + u16(options.method) + u32(0) +
                               u32(crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size())) +
                               short_of(content.size()) + short_of(content.size()) + u16(name.size());
    const std::string extra = options.in_64 ? u16(7) + u16(2) + "xy" + u16(1) + u16(24) + u64(content.size()) +
                                                  u64(content.size()) + u64(bytes.size())
                                            : "";
    directory += u32(0x02014b50) + u16(20) + before + u16(extra.size()) + u16(3) + u16(0) + u16(0) + u32(0) +
                 short_of(bytes.size()) + name + extra + "abc";
    const std::string padding = u16(0xffff) + u16(5) + "pad..";
    bytes += u32(0x04034b50) + before + u16(padding.size()) + name + padding + content;
  }
  const std::size_t begin = bytes.size(), count = entries.size();
  bytes += directory;
  if (options.in_64) {
    const std::size_t end64 = bytes.size();
    bytes += u32(0x06064b50) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(count) + u64(count) +
             u64(directory.size()) + u64(begin);
    bytes += u32(0x07064b50) + u32(0) + u64(end64) + u32(1);
  }
  return bytes + u32(0x06054b50) + u16(0) + u16(0) + u16(options.in_64 ? 0xffff : count) +
         u16(options.in_64 ? 0xffff : count) + short_of(directory.size()) + short_of(begin) +
         u16(options.comment.size()) + options.comment;
}

// Parts of a pickle of protocol 2.
inline std::string pickled_text(std::string_view text) {
  return "X" + little(static_cast<std::uint32_t>(text.size())) + std::string(text);
}
inline std::string pickled_integer(std::int32_t value) { return "J" + little(value); }
inline std::string pickled_name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string pickled_tuple(const std::vector<std::int32_t>& values) {
  std::string tuple = "(";
  for (const std::int32_t value : values) tuple += pickled_integer(value);
  return tuple + "t";
}
// A tensor of storage `key`, of `count` values.
inline std::string pickled_tensor(const std::string& key, std::int32_t count, std::int32_t offset,
                                  const std::vector<std::int32_t>& shape, const std::vector<std::int32_t>& strides,
                                  const std::string& storage = "FloatStorage") {
  return pickled_name("torch._utils", "_rebuild_tensor_v2") + "((" + pickled_text("storage") +
         pickled_name("torch", storage) + pickled_text(key) + pickled_text("cpu") + pickled_integer(count) + "tQ" +
         pickled_integer(offset) + pickled_tuple(shape) + pickled_tuple(strides) + "\x89" +
         pickled_name("collections", "OrderedDict") + ")RtR";
}
inline std::string pickle_of(const std::string& value) { return "\x80\x02" + value + "."; }

// A file of torch.save with one value and these storages.
inline std::string torch_file_of(const std::string& value, ZipEntries storages = {},
                                 const std::string& order = "little") {
  ZipEntries entries = {{"archive/data.pkl", pickle_of(value)}, {"archive/byteorder", order}};
  for (auto& [key, bytes] : storages) entries.emplace_back("archive/data/" + key, bytes);
  return zip_of(entries);
}

}  // namespace teratron::testing
