#include "checkpoint/torch/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "checkpoint/torch/storage_types.h"

namespace teratron {
namespace {

// Names that checkpoints of weights have beside those of storages (storage_types.h). None is called; objects of most of
// them are passed over.
constexpr auto kPickledNames = std::to_array<std::string_view>({
    "collections.OrderedDict",
    "collections.defaultdict",
    "argparse.Namespace",
    "__builtin__.set",
    "__builtin__.frozenset",
    "__builtin__.dict",
    "__builtin__.list",
    "__builtin__.complex",
    "__builtin__.bytearray",
    "__builtin__.object",
    "copy_reg._reconstructor",
    "_codecs.encode",
    "_io.BytesIO",
    "pathlib.PosixPath",
    "signal.Signals",
    "numpy.ndarray",
    "numpy.dtype",
    "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "torch.Size",
    "torch.device",
    "torch.float64",
    "torch.float32",
    "torch.float16",
    "torch.bfloat16",
    "torch.int64",
    "torch.int32",
    "torch.uint8",
    "torch.bool",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
});
// Settings of Megatron-LM are enumerations of its own; older ones also keep its loss scaler.
constexpr std::string_view kModulesOfMegatron[] = {"megatron.", "fp16.loss_scaler."};

bool is_data(std::string_view name) {
  return std::ranges::find(kPickledNames, name) != kPickledNames.end() || find_storage_type(name) != nullptr ||
         std::ranges::any_of(kModulesOfMegatron, [&](std::string_view module) { return name.starts_with(module); });
}

bool makes_dictionary(std::string_view name) {
  return name == "collections.OrderedDict" || name == "collections.defaultdict" || name == "__builtin__.dict";
}
// Whether a call makes a parameter of a tensor, which are one here.
bool is_parameter(const PickleValue& callee, const PickleValue& arguments) {
  return callee.text == "torch._utils._rebuild_parameter" && !arguments.items.empty() &&
         arguments.items[0]->is(PickleKind::kObject);
}

// Stack machine of the opcodes.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::filesystem::path& path, std::deque<PickleValue>& values,
            std::deque<std::string>& names)
      : bytes_(bytes), path_(path), values_(values), names_(names) {}

  const PickleValue* run() {
    if (take<std::uint8_t>() != 0x80 || take<std::uint8_t>() != 2) fail("it is not of protocol 2");
    for (;;) {
      const auto opcode = static_cast<char>(take<std::uint8_t>());
      if (opcode == '.') return pop();
      if (!run_value(opcode) && !run_container(opcode) && !run_memo(opcode) && !run_object(opcode)) {
        fail("its opcode 0x{:02x} at byte {} is none that torch.save writes", static_cast<unsigned char>(opcode),
             at_ - 1);
      }
    }
  }

  const std::vector<const PickleValue*>& persistent_ids() const { return persistent_ids_; }
  std::size_t bytes_read() const { return at_; }

 private:
  // Each runs an opcode of its kind; false: it is of another.
  bool run_value(char opcode) {
    switch (opcode) {
      case 'N': push(PickleKind::kNone); return true;
      case '\x88': push_integer(1).kind = PickleKind::kBool; return true;
      case '\x89': push_integer(0).kind = PickleKind::kBool; return true;
      case 'K': push_integer(take<std::uint8_t>()); return true;
      case 'M': push_integer(take<std::uint16_t>()); return true;
      case 'J': push_integer(take<std::int32_t>()); return true;
      case '\x8a': push_long(take<std::uint8_t>()); return true;
      case 'G':  // the one number that is big-endian
        push(PickleKind::kNumber).number = std::bit_cast<double>(__builtin_bswap64(take<std::uint64_t>()));
        return true;
      case 'X': push(PickleKind::kText).text = take(take<std::uint32_t>()); return true;
      case 'U': push(PickleKind::kText).text = take(take<std::uint8_t>()); return true;
      default: return false;
    }
  }

  bool run_container(char opcode) {
    switch (opcode) {
      case '(': marks_.push_back(stack_.size()); return true;
      case '}': push(PickleKind::kDictionary); return true;
      case ']':
      case ')': push(PickleKind::kList); return true;
      case '\x85': push_tuple(1); return true;
      case '\x86': push_tuple(2); return true;
      case '\x87': push_tuple(3); return true;
      case 't': push_tuple(since_mark()); return true;
      case 'a': add_to(PickleKind::kList, 1); return true;
      case 'e': add_to(PickleKind::kList, since_mark()); return true;
      case 's': add_to(PickleKind::kDictionary, 2); return true;
      case 'u': add_to(PickleKind::kDictionary, since_mark()); return true;
      default: return false;
    }
  }

  bool run_memo(char opcode) {
    switch (opcode) {
      case 'q': memo_[take<std::uint8_t>()] = top(); return true;
      case 'r': memo_[take<std::uint32_t>()] = top(); return true;
      case 'h': push_remembered(take<std::uint8_t>()); return true;
      case 'j': push_remembered(take<std::uint32_t>()); return true;
      default: return false;
    }
  }

  bool run_object(char opcode) {
    switch (opcode) {
      case 'c': push_name(); return true;
      case 'Q': {
        PickleValue* const id = pop();
        PickleValue& object = push(PickleKind::kObject);
        object.text = kPersistentObject;
        object.items = {id};
        persistent_ids_.push_back(id);
        return true;
      }
      case '\x81':
      case 'R': {
        PickleValue* const arguments = pop();
        PickleValue* const callee = pop();
        push_call(*callee, *arguments);
        return true;
      }
      case 'b': {
        PickleValue* const state = pop();
        PickleValue& object = *top();
        if (!object.is(PickleKind::kObject)) return true;  // as an OrderedDict's
        object.items.resize(1);
        object.items.push_back(state);
        return true;
      }
      default: return false;
    }
  }

  void push_long(std::size_t count) {
    const std::string_view digits = take(count);  // two's complement, the lowest byte first
    double number = 0;
    std::uint64_t low = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto digit = static_cast<unsigned char>(digits[i]);
      number += std::ldexp(digit, static_cast<int>(8 * i));
      if (i < sizeof low) low |= std::uint64_t{digit} << (8 * i);
    }
    const bool is_negative = count > 0 && (digits.back() & 0x80) != 0;
    if (is_negative) number -= std::ldexp(1.0, static_cast<int>(8 * count));
    if (is_negative && count < sizeof low) low |= ~std::uint64_t{0} << (8 * count);
    PickleValue& value = push_integer(std::bit_cast<std::int64_t>(low));
    value.number = number;
    if (count > sizeof low) value.kind = PickleKind::kNumber;  // too large for a whole one
  }

  void push_name() {
    const std::string_view module = take_line(), name = take_line();
    const std::string& full = names_.emplace_back(fmt::format("{}.{}", module, name));
    if (!is_data(full)) {
      fail(
          "it names {}, which is not data. Python would call that when it reads the file, and no checkpoint of weights "
          "needs it; nothing was run here",
          full);
    }
    push(PickleKind::kName).text = full;
  }

  void push_call(const PickleValue& callee, const PickleValue& arguments) {
    if (!callee.is(PickleKind::kName) || !arguments.is(PickleKind::kList)) fail("it calls what is no function");
    if (makes_dictionary(callee.text)) {
      push(PickleKind::kDictionary);
    } else if (is_parameter(callee, arguments)) {
      push(PickleKind::kNone) = *arguments.items[0];
    } else {
      PickleValue& object = push(PickleKind::kObject);
      object.text = callee.text;
      object.items = {&arguments};
    }
  }

  void push_tuple(std::size_t count) {
    const std::vector<const PickleValue*> items = pop(count);
    push(PickleKind::kList).items = items;
  }

  // Adds the last values to the list or dictionary below them. Objects of classes that are passed over may be either.
  void add_to(PickleKind kind, std::size_t count) {
    const std::vector<const PickleValue*> items = pop(count);
    PickleValue& to = *top();
    if (to.is(PickleKind::kObject)) return;
    if (!to.is(kind) || (kind == PickleKind::kDictionary && count % 2 != 0)) fail("it adds to what is no container");
    to.items.insert(to.items.end(), items.begin(), items.end());
  }

  PickleValue& push(PickleKind kind) {
    PickleValue& value = values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }
  PickleValue& push_integer(std::int64_t integer) {
    PickleValue& value = push(PickleKind::kInteger);
    value.integer = integer;
    value.number = static_cast<double>(integer);
    return value;
  }
  void push_remembered(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("it refers to a value that is not there");
    stack_.push_back(found->second);
  }

  PickleValue* top() const {
    if (stack_.empty()) fail("a value is missing");
    return stack_.back();
  }
  PickleValue* pop() {
    PickleValue* const value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const PickleValue*> pop(std::size_t count) {
    if (count > stack_.size()) fail("values are missing");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<const PickleValue*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return items;
  }
  std::size_t since_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("a mark is missing");
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) fail("it ends in the middle");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take_line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("it ends in the middle");
    const std::size_t length = end - at_;
    return take(length + 1).substr(0, length);
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("the pickle in '{}' cannot be read: {}", path_.string(),
                     fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view bytes_;
  const std::filesystem::path& path_;
  std::deque<PickleValue>& values_;
  std::deque<std::string>& names_;
  std::size_t at_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<const PickleValue*> persistent_ids_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  if (!is(PickleKind::kDictionary)) return nullptr;
  for (std::size_t i = items.size(); i >= 2; i -= 2) {  // a later one replaces an earlier one
    if (items[i - 2]->is(PickleKind::kText) && items[i - 2]->text == key) return items[i - 1];
  }
  return nullptr;
}

Pickle::Pickle(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.size() > kMostBytes) {
    throw_user_error("the pickle in '{}' has {} bytes; those of weights have far fewer, and {} are the most",
                     path.string(), bytes.size(), kMostBytes);
  }
  Unpickler unpickler(bytes, path, values_, names_);
  content_ = unpickler.run();
  persistent_ids_ = unpickler.persistent_ids();
  bytes_read_ = unpickler.bytes_read();
}

}  // namespace teratron
