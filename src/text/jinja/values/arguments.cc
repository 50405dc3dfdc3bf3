#include "jinja/values/arguments.h"

#include <algorithm>

namespace teratron::jinja {

Bound::Bound(std::string_view function, Arguments& arguments, std::initializer_list<std::string_view> names,
             std::size_t required)
    : function_(function), values_(names.size()), given_(names.size()) {
  if (arguments.positional.size() > names.size()) {
    fail("{}() takes at most {} arguments ({} given)", function, names.size(), arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = std::move(arguments.positional[i]);
    given_[i] = true;
  }
  for (auto& [name, value] : arguments.named) {
    const auto place = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (place == names.size()) fail("{}() got an unexpected keyword argument '{}'", function, name);
    if (given_[place]) fail("{}() got multiple values for argument '{}'", function, name);
    values_[place] = std::move(value);
    given_[place] = true;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!given_[i]) fail("{}() missing 1 required argument: '{}'", function, names.begin()[i]);
  }
}

std::int64_t Bound::integer_or(std::size_t i, std::int64_t other) const {
  if (!given_[i] || values_[i].is_none()) return other;
  require_defined(values_[i]);
  if (!values_[i].is_integer()) fail("{}() takes an integer, not a {}", function_, type_name(values_[i]));
  return values_[i].integer();
}

}  // namespace teratron::jinja
