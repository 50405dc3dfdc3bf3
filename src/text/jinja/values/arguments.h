// Arguments of a function, method or filter, by the names of its parameters.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "jinja/values/value.h"

namespace teratron::jinja {

// Binds arguments to parameters. Error: too many, unknown, repeated or missing ones.
class Bound {
 public:
  Bound(std::string_view function, Arguments& arguments, std::initializer_list<std::string_view> names,
        std::size_t required = 1);
  bool has(std::size_t i) const { return given_[i]; }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  // The argument; `other` where it is absent or None. Error: it is no integer.
  std::int64_t integer_or(std::size_t i, std::int64_t other) const;
  bool flag_or(std::size_t i, bool other) const { return given_[i] ? is_true(values_[i]) : other; }

 private:
  std::string_view function_;
  Values values_;
  std::vector<bool> given_;
};

}  // namespace teratron::jinja
