#include "emulated_gpu/ptx/decoder.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "emulated_gpu/ptx/opcodes.h"

namespace teratron::emulated::ptx {
namespace {

constexpr std::array<std::string_view, 13> kSpecialRegisters = {
    "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
    "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};

std::size_t rounded_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Parts between commas that stand in no bracket.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && (text[at] == '{' || text[at] == '[')) ++depth;
    if (at < text.size() && (text[at] == '}' || text[at] == ']')) --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    if (const std::string_view part = trimmed(text.substr(begin, at - begin)); !part.empty()) parts.push_back(part);
    begin = at + 1;
  }
  return parts;
}

// "72", "-1", "0x1F", "0f3F800000", "0d3FF0000000000000".
std::uint64_t number_of(std::string_view text) {
  const bool is_float = text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'd');
  const std::string digits(is_float ? text.substr(2) : text);
  char* end = nullptr;
  const bool negative = digits.front() == '-';
  const std::uint64_t value = negative ? static_cast<std::uint64_t>(std::strtoll(digits.c_str(), &end, 0))
                                       : std::strtoull(digits.c_str(), &end, is_float ? 16 : 0);
  check(end != digits.c_str() && (*end == '\0' || *end == 'U'), fmt::format("a number in PTX: {}", text));
  return value;
}

class Decoder {
 public:
  explicit Decoder(const KernelText& kernel) : kernel_(kernel) {
    program_.kernel = demangled(kernel.name);
    program_.file = kernel.file;
  }

  Program run() {
    declare_parameters();
    const std::vector<Statement> statements = statements_of(kernel_.body, kernel_.line);
    declare_shared(statements);
    for (const Statement& statement : statements) {
      if (statement.is_label) {
        labels_[std::string(statement.text)] = static_cast<std::uint32_t>(program_.code.size());
      } else if (statement.text.front() == '.') {
        if (statement.text.starts_with(".reg")) declare_register(statement.text);
      } else {
        line_ = statement.line;
        decode_instruction(statement.text);
      }
    }
    for (const auto& [at, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) fail(fmt::format("there is no label {}", label));
      program_.code[at].target = found->second;
    }
    assign_rows(program_, widths_);
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("{}:{}: {} (kernel {})", kernel_.file, line_, what, program_.kernel));
  }

  void declare_parameters() {
    for (const std::string_view part : parts_of(kernel_.parameters)) {
      const Declaration declared = declaration_of(part);
      const std::size_t offset = rounded_up(program_.parameter_bytes, declared.alignment);
      program_.parameters.push_back({offset, declared.bytes, declared.alignment});
      program_.parameter_bytes = offset + declared.bytes;
      symbols_[declared.name] = offset;
    }
    constexpr std::string_view kMost = ".maxntid";
    if (const std::size_t at = kernel_.directives.find(kMost); at != std::string::npos) {
      const std::size_t end = kernel_.directives.find('\n', at);
      program_.most_threads = 1;
      for (const auto part :
           parts_of(std::string_view(kernel_.directives).substr(at + kMost.size(), end - at - kMost.size()))) {
        program_.most_threads *= static_cast<unsigned>(number_of(part));
      }
    }
  }

  // The kernel's own variables first, then those of the file that it names, then what the launch asks for.
  void declare_shared(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      if (!statement.text.starts_with(".shared")) continue;
      const Declaration declared = declaration_of(statement.text);
      place_shared(declared.name, declared.bytes, declared.alignment);
    }
    for (const bool dynamic : {false, true}) {
      for (const auto& [name, variable] : kernel_.shared) {
        if (variable.is_dynamic != dynamic || kernel_.body.find(name) == std::string::npos) continue;
        if (dynamic) {
          program_.dynamic_shared_at = rounded_up(program_.static_shared, variable.alignment);
          symbols_[name] = program_.dynamic_shared_at;
        } else {
          place_shared(name, variable.bytes, variable.alignment);
        }
      }
    }
    program_.dynamic_shared_at = std::max(program_.dynamic_shared_at, program_.static_shared);
  }

  void place_shared(const std::string& name, std::size_t bytes, std::size_t alignment) {
    symbols_[name] = rounded_up(program_.static_shared, alignment);
    program_.static_shared = symbols_[name] + bytes;
  }

  // ".reg .b32 %r<2562>", or one with a name of its own.
  void declare_register(std::string_view text) {
    const std::size_t type = text.find('.', 1), name = text.find('%');
    if (type == std::string_view::npos || name == std::string_view::npos) fail("a declaration of registers");
    const std::size_t bytes = bytes_of_type(trimmed(text.substr(type, name - type)));
    classes_[std::string(text.substr(name, text.find('<') - name))] = bytes == 8 ? 8 : 4;
  }

  void decode_instruction(std::string_view text) {
    Instruction& instruction = program_.code.emplace_back();
    instruction.line = line_;
    if (text.front() == '@') {
      const std::size_t end = text.find_first_of(kBlanks);
      instruction.guard_negated = text[1] == '!';
      const std::size_t begin = instruction.guard_negated ? 2 : 1;
      instruction.guard = register_of(text.substr(begin, end - begin));
      text = trimmed(text.substr(end));
    }
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    const std::vector<std::string_view> operands = parts_of(text.substr(end));
    const std::string name = name_of(text.substr(0, end), operands);
    type_bytes_ = bytes_of_type(std::string_view(name).substr(std::min(name.rfind('.'), name.size())));
    const auto found = opcodes().find(name);
    if (found == opcodes().end()) fail(fmt::format("opcodes.h has no instruction {}", name));
    const Opcode& opcode = found->second;
    instruction.run = opcode.run;
    instruction.kind = opcode.kind;
    instruction.role = opcode.role;
    program_.has_products = program_.has_products || opcode.role == Role::kProduct;
    if (opcode.kind == Kind::kBranch) {
      branches_.emplace_back(program_.code.size() - 1, std::string(operands.at(0)));
      return;
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i == 1 && name == "special.u32") {
        instruction.offset = special_number(operands[i]);
        continue;
      }
      add_operand(instruction, operands[i], i < opcode.widths.size() ? opcode.widths[i] : 4);
      if (i + 1 == opcode.outputs) instruction.outputs = instruction.operands;
    }
    if (name.starts_with("cp.async.c") && operands.size() == 3) add_operand(instruction, operands[2], 4);  // all given
    check_operands(name, operands, opcode.operands);
  }

  // The function of mov and the source of cvt depend on their operands.
  std::string name_of(std::string_view written, const std::vector<std::string_view>& operands) {
    if (written.starts_with("cvt.") && operands.size() == 2 && operands[1].front() == '%') {
      const bool wide = widths_[register_of(operands[1])] == 8;
      const bool narrow_type = bytes_of_type(written.substr(written.rfind('.'))) < 8;
      return std::string(written) + (wide && narrow_type ? ".wide" : "");
    }
    if (written == "bar.sync" && operands.size() == 2) return "bar.sync.counted";
    if (written.starts_with("wgmma.mma_async") && operands.size() > 1 && operands[1].front() == '{') {
      return std::string(written) + ".registers";  // of the left operand
    }
    if (!written.starts_with("mov.") || operands.size() != 2) return std::string(written);
    const std::string type(written.substr(3));
    if (operands[0].front() == '{') return "split" + type;
    if (operands[1].front() == '{') return "join" + type;
    return is_special(operands[1]) ? "special.u32" : std::string(written);
  }

  static bool is_special(std::string_view text) {
    return std::find(kSpecialRegisters.begin(), kSpecialRegisters.end(), text) != kSpecialRegisters.end();
  }
  static std::int64_t special_number(std::string_view text) {
    return std::find(kSpecialRegisters.begin(), kSpecialRegisters.end(), text) - kSpecialRegisters.begin();
  }

  void check_operands(const std::string& name, const std::vector<std::string_view>& operands, unsigned count) const {
    const Instruction& instruction = program_.code.back();
    const bool right_number = name == "bar.sync"               ? operands.size() == 1 && operands[0] == "0"
                              : name.starts_with("cp.async.c") ? !instruction.wide_address
                                                               : count == 0 || instruction.operands == count;
    if (!right_number) fail(fmt::format("operands that {} does not have here", name));
  }

  void add_operand(Instruction& instruction, std::string_view text, std::uint8_t width) {
    if (text.front() == '[') {
      const std::vector<std::string_view> parts = parts_of(text.substr(1, text.size() - 2));
      add_address(instruction, parts.at(0));
      if (parts.size() == 2) add_operand(instruction, parts[1], 4);  // coordinates in a tensor
      return;
    }
    if (text == "_") return instruction.add_row(kNoRow);  // a result that nobody wants
    if (text.front() == '{') {
      for (const std::string_view part : parts_of(text.substr(1, text.size() - 2))) {
        add_operand(instruction, part, width);
      }
      return;
    }
    if (instruction.kind == Kind::kExchange && instruction.operands == 0) {  // the second result may be left out
      const std::size_t bar = text.find('|');
      add_row(instruction, register_of(text.substr(0, bar)), width);
      if (bar == std::string_view::npos) {
        instruction.add_row(kNoRow);
      } else {
        add_row(instruction, register_of(text.substr(bar + 1)), width);
      }
      return;
    }
    if (text.front() == '%') return add_row(instruction, register_of(text), width);
    const auto symbol = symbols_.find(std::string(text));
    const std::uint8_t bytes = width == kAnyWidth ? (type_bytes_ == 8 ? 8 : 4) : width;
    add_row(instruction, constant(symbol != symbols_.end() ? symbol->second : number_of(text), bytes), 0);
    if (width == kAnyWidth) instruction.wide_data = bytes == 8;
  }

  void add_row(Instruction& instruction, Row row, std::uint8_t width) {
    if (instruction.operands >= kMostOperands) fail("too many operands");
    if ((row & kConstant) == 0) {
      if (width != kAnyWidth && widths_[row] != width) fail("a register of another size than the instruction's");
      if (width == kAnyWidth) instruction.wide_data = widths_[row] == 8;
    }
    instruction.add_row(row);
  }

  // "base+offset", where the base is a register or a variable's name.
  void add_address(Instruction& instruction, std::string_view text) {
    const std::size_t plus = std::min(text.find('+'), text.size());
    const std::string_view base = trimmed(text.substr(0, plus));
    const auto offset = plus < text.size() ? static_cast<std::int64_t>(number_of(trimmed(text.substr(plus + 1)))) : 0;
    const bool is_source = instruction.operands > 0 && program_.code.back().outputs == 0;  // of cp.async
    if (is_source && instruction.operands > 1) {  // the mbarrier of a bulk copy
      if (offset != 0) fail("a third address with an offset");
    } else {
      (is_source ? instruction.source_offset : instruction.offset) = offset;
    }
    if (base.front() != '%') {
      const auto found = symbols_.find(std::string(base));
      if (found == symbols_.end()) fail(fmt::format("there is no variable {}", base));
      instruction.add_row(constant(found->second, 8));
      return;
    }
    const Row row = register_of(base);
    if (!is_source) instruction.wide_address = widths_[row] == 8;
    instruction.add_row(row);
  }

  Row register_of(std::string_view name) {
    const auto [entry, is_new] = registers_.try_emplace(std::string(name), static_cast<Row>(widths_.size()));
    if (is_new) {
      auto found = classes_.find(std::string(name));
      if (found == classes_.end())
        found = classes_.find(std::string(name.substr(0, name.find_last_not_of("0123456789") + 1)));
      if (found == classes_.end()) fail(fmt::format("register {} is not declared", name));
      widths_.push_back(found->second);
    }
    return entry->second;
  }

  Row constant(std::uint64_t value, std::uint8_t bytes) {
    if (bytes == 4) value &= 0xffffffffU;
    const auto [entry, is_new] =
        constants_.try_emplace({value, bytes}, static_cast<Row>(program_.constants.size()) | kConstant);
    for (unsigned lane = 0; is_new && lane < kLanes; ++lane) {
      program_.constants.push_back(static_cast<std::uint32_t>(value));
      if (bytes == 8) program_.constants.push_back(static_cast<std::uint32_t>(value >> 32));
    }
    return entry->second;
  }

  const KernelText& kernel_;
  Program program_;
  int line_ = 0;                                           // of the statement, as is
  std::size_t type_bytes_ = 0;                             // of its type
  std::unordered_map<std::string, std::size_t> symbols_;   // addresses of parameters and shared variables
  std::unordered_map<std::string, std::uint8_t> classes_;  // bytes, by the name without its number
  std::unordered_map<std::string, Row> registers_;         // their numbers
  std::vector<std::uint8_t> widths_;                       // of registers
  std::map<std::pair<std::uint64_t, std::uint8_t>, Row> constants_;
  std::unordered_map<std::string, std::uint32_t> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
};

}  // namespace

Program decode(const KernelText& kernel) { return Decoder(kernel).run(); }

}  // namespace teratron::emulated::ptx
