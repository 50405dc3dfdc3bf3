// Reading the fields of a JSON file that a person or a disk may have spoilt: each call takes one field and checks it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron {

// UserError, naming `path`, unless the text is one JSON object, whose values nest 1000 deep at most.
nlohmann::json parse_json_object(std::string_view text, const std::filesystem::path& path);

// The fields of one object. Each call is a UserError that names the file and the field where it is missing, of another
// type, or out of range. Holds references: the object and the path must outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, const std::filesystem::path& path) : object_(object), path_(path) {}

  bool has(std::string_view key) const;  // there, and not null
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  std::uint64_t unsigned_integer(std::string_view key) const;
  double number(std::string_view key) const;  // finite
  bool boolean(std::string_view key) const;
  std::string string(std::string_view key) const;
  const nlohmann::json& object(std::string_view key) const;
  const nlohmann::json& operator[](std::string_view key) const;  // of any type

  [[noreturn]] void throw_not(std::string_view key, std::string_view wanted) const;

 private:
  const nlohmann::json& object_;
  const std::filesystem::path& path_;
};

}  // namespace teratron
