// A tensor map as the emulated driver writes it: a real one's contents are the driver's secret.
#pragma once

#include <array>
#include <cstdint>

namespace teratron::emulated {

constexpr unsigned kMostTensorAxes = 5;

struct TensorMap {
  static constexpr std::uint64_t kMagic = 0x70616d726f736e74;  // of none that was not encoded
  std::uint64_t magic = 0, address = 0;
  std::array<std::uint64_t, kMostTensorAxes - 1> strides{};  // bytes, from axis 1 on
  std::array<std::uint32_t, kMostTensorAxes> sizes{};        // elements, from the fastest axis on
  std::array<std::uint16_t, kMostTensorAxes> box{};
  std::uint8_t axes = 0, element_bytes = 0;
  std::uint8_t swizzle_bits = 0;  // bits of an address that change: 0 to 3

  std::uint64_t box_bytes() const {
    std::uint64_t bytes = element_bytes;
    for (unsigned axis = 0; axis < axes; ++axis) bytes *= box[axis];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) <= 128);

// Where a byte lies in shared memory whose 16-byte chunks are swizzled: bits 7.. of the address change bits 4.. of it.
constexpr std::uint64_t swizzled(std::uint64_t address, unsigned bits) {
  return address ^ ((address >> 7 & ((1U << bits) - 1)) << 4);
}

}  // namespace teratron::emulated
