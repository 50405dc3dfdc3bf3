// Pickles, Python's format of objects, as torch.save writes them: protocol 2 (Lib/pickletools.py describes every
// opcode). Python's own reader calls whatever function a pickle names. This one calls nothing: it makes a tree of
// values, in which classes and functions are names, and refuses names that no checkpoint of weights needs.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

enum class PickleKind {
  kNone,
  kBool,
  kInteger,
  kNumber,
  kText,
  kList,        // a list or a tuple
  kDictionary,  // of any kind
  kName,        // a class or a function: "torch.FloatStorage"
  kObject,      // a call of a name, and what its state was set to
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  std::int64_t integer = 0;               // kBool, too
  double number = 0;                      // kInteger, too
  std::string_view text;                  // kText: in UTF-8; kName; kObject: the name that was called
  std::vector<const PickleValue*> items;  // kList; kDictionary: a key, its value, and so on; kObject: arguments, state

  bool is(PickleKind one) const { return kind == one; }
  // The value of a key of a dictionary; nullptr: it has none, or this is no dictionary.
  const PickleValue* find(std::string_view key) const;
  // The state of an object, as the attributes of an argparse.Namespace; nullptr: none.
  const PickleValue* state() const { return is(PickleKind::kObject) && items.size() > 1 ? items[1] : nullptr; }
};

// Name of the objects that stand for something beside the pickle, as torch's storages do; their first item is its id.
constexpr std::string_view kPersistentObject = "persistent";

// Values of one pickle. They may refer to themselves, as a list may hold itself.
class Pickle {
 public:
  // Reads what `bytes` begins with, which must outlive it. UserError, naming `path`: no pickle of protocol 2, cut
  // short, an opcode that torch.save does not write, or a name that is not data; larger than kMostBytes.
  Pickle(std::string_view bytes, const std::filesystem::path& path);

  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& content() const { return *content_; }
  // Ids of the objects that stand beside the pickle, as often as it refers to them.
  const std::vector<const PickleValue*>& persistent_ids() const { return persistent_ids_; }
  std::size_t bytes_read() const { return bytes_read_; }

  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // the values take 70 times as many

 private:
  std::deque<PickleValue> values_;
  std::deque<std::string> names_;
  std::vector<const PickleValue*> persistent_ids_;
  const PickleValue* content_ = nullptr;
  std::size_t bytes_read_ = 0;
};

}  // namespace teratron
