// One JSON object, as all our own files hold.
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const nlohmann::json object = parse_json_object(fit_json(input), "a.json");
  const std::filesystem::path path = "a.json";
  const JsonFields fields(object, path);
  for (const auto& [key, value] : object.items()) {
    require(fields.contains(key), "a key that is there is found");
    if (value.is_number_integer() && fields.has(key)) fields.integer(key, -1000, 1000);
  }
}
