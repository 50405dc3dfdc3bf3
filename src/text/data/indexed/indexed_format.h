// The indexed dataset format of Megatron-LM ("MMIDIDX"), little endian: PREFIX.bin holds the tokens one after another,
// PREFIX.idx says where each sequence and document begins. The layout of the index:
//
//   9 bytes  "MMIDIDX\0\0"          u64  version, 1          u8  token type          u64  sequences S
//   u64      documents + 1          i32[S] tokens of each sequence                   i64[S] its first byte in .bin
//   i64[documents + 1] the first sequence of each document: 0 first, S last
//
// GPT writes a sequence per document, BERT a sequence per sentence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace teratron {

constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kIndexVersion = 1;
constexpr std::size_t kIndexHeaderBytes = 9 + 8 + 1 + 8 + 8;

// How a token is stored; the values are the format's codes. Codes 6 and 7 are floating point and hold no tokens.
enum class TokenType : std::uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };

// Calls body with a value of the C++ type of `type`.
template <class Body>
decltype(auto) with_token_type(TokenType type, Body&& body) {
  switch (type) {
    case TokenType::kU8: return body(std::uint8_t{});
    case TokenType::kI8: return body(std::int8_t{});
    case TokenType::kI16: return body(std::int16_t{});
    case TokenType::kI32: return body(std::int32_t{});
    case TokenType::kI64: return body(std::int64_t{});
    case TokenType::kU16: return body(std::uint16_t{});
  }
  throw InternalError("a token type that the format does not have");
}

inline std::int64_t size_of(TokenType type) {
  return with_token_type(type, [](auto value) { return static_cast<std::int64_t>(sizeof(value)); });
}

constexpr std::string_view name_of(TokenType type) {
  switch (type) {
    case TokenType::kU8: return "u8";
    case TokenType::kI8: return "i8";
    case TokenType::kI16: return "i16";
    case TokenType::kI32: return "i32";
    case TokenType::kI64: return "i64";
    case TokenType::kU16: return "u16";
  }
  return "?";
}

// The type that Megatron-LM's writer chooses: u16 if the ids fit with room to spare.
constexpr TokenType token_type_for(std::int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kU16 : TokenType::kI32;
}

inline std::filesystem::path bin_path(const std::filesystem::path& prefix) { return prefix.string() + ".bin"; }
inline std::filesystem::path idx_path(const std::filesystem::path& prefix) { return prefix.string() + ".idx"; }

}  // namespace teratron
