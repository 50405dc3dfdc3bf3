// A second reader of GGUF, from its description (github.com/ggml-org/ggml, docs/gguf.md); it shares no code with the
// writer. A fault of the file is an exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace teratron::testing {

struct ReadTensor {
  std::vector<std::uint64_t> sizes;  // columns first
  std::uint32_t type = 0;
  std::vector<double> values;
  std::vector<double> steps;  // of Q8_0's and Q4_0's blocks
};

class GgufReader {
 public:
  explicit GgufReader(std::string bytes) : bytes_(std::move(bytes)) {
    need(take_bytes(4) == "GGUF" && take<std::uint32_t>() == 3, "magic and version");
    const auto declared = take<std::uint64_t>(), values = take<std::uint64_t>();
    for (std::uint64_t i = 0; i < values; ++i) {
      const std::string key = take_string();
      need(!metadata.contains(key), "one value of " + key);
      metadata[key] = take_value(take<std::uint32_t>());
    }
    std::vector<std::pair<std::string, std::uint64_t>> offsets;
    for (std::uint64_t i = 0; i < declared; ++i) read_declaration(offsets);
    at_ = (at_ + 31) / 32 * 32;
    const std::size_t data = at_;
    std::uint64_t end = 0;
    for (const auto& [name, offset] : offsets) {
      need(offset == end, "the next multiple of 32 for " + name);
      at_ = data + offset;
      read_values(tensors.at(name));
      end = (at_ - data + 31) / 32 * 32;
    }
    need(bytes_.size() == data + end, "the end of the file");
  }

  nlohmann::json metadata = nlohmann::json::object();
  std::map<std::string, ReadTensor> tensors;

 private:
  static void need(bool found, const std::string& what) {
    if (!found) throw std::runtime_error("GGUF: there is not " + what);
  }
  std::string take_bytes(std::size_t count) {
    need(at_ + count <= bytes_.size(), "a whole file");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string take_string() { return take_bytes(take<std::uint64_t>()); }
  nlohmann::json take_value(std::uint32_t type) {
    switch (type) {
      case 4: return take<std::uint32_t>();
      case 5: return take<std::int32_t>();
      case 6: return take<float>();
      case 7: return take<std::uint8_t>() != 0;
      case 8: return take_string();
      case 9: break;
      default: throw std::runtime_error("GGUF: a value of type " + std::to_string(type));
    }
    const auto of = take<std::uint32_t>();
    nlohmann::json list = nlohmann::json::array();
    for (auto left = take<std::uint64_t>(); left > 0; --left) list.push_back(take_value(of));
    return list;
  }
  void read_declaration(std::vector<std::pair<std::string, std::uint64_t>>& offsets) {
    const std::string name = take_string();
    need(!tensors.contains(name), "one tensor " + name);
    ReadTensor tensor;
    for (auto left = take<std::uint32_t>(); left > 0; --left) tensor.sizes.push_back(take<std::uint64_t>());
    tensor.type = take<std::uint32_t>();
    offsets.emplace_back(name, take<std::uint64_t>());
    tensors[name] = tensor;
  }
  // IEEE 754's formats of 16 bits: so many bits of the exponent, and the rest of the mantissa.
  static double narrow(std::uint16_t bits, int exponent_bits) {
    const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7FFF) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                 : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
  // Halves of 16 bytes: the low ones are values 0 to 15 of the block.
  void read_q4(ReadTensor& tensor, std::uint64_t count) {
    tensor.values.resize(count);
    for (std::uint64_t block = 0; block < count; block += 32) {
      tensor.steps.push_back(narrow(take<std::uint16_t>(), 5));
      for (std::uint64_t i = 0; i < 16; ++i) {
        const int both = take<std::uint8_t>();
        tensor.values[block + i] = tensor.steps.back() * (both % 16 - 8);
        tensor.values[block + 16 + i] = tensor.steps.back() * (both / 16 - 8);
      }
    }
  }
  void read_values(ReadTensor& tensor) {
    std::uint64_t count = 1;
    for (const std::uint64_t size : tensor.sizes) count *= size;
    need((tensor.type != 8 && tensor.type != 2) || tensor.sizes[0] % 32 == 0, "rows of whole blocks");
    if (tensor.type == 2) return read_q4(tensor, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      switch (tensor.type) {
        case 0: tensor.values.push_back(take<float>()); break;
        case 1: tensor.values.push_back(narrow(take<std::uint16_t>(), 5)); break;
        case 30: tensor.values.push_back(narrow(take<std::uint16_t>(), 8)); break;
        case 8:
          if (i % 32 == 0) tensor.steps.push_back(narrow(take<std::uint16_t>(), 5));
          tensor.values.push_back(tensor.steps.back() * take<std::int8_t>());
          break;
        default: throw std::runtime_error("GGUF: a tensor of type " + std::to_string(tensor.type));
      }
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace teratron::testing
