// Python's operators.
#pragma once

#include "jinja/values/value.h"

namespace teratron::jinja {

enum class Operator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

// Error: Python's, or a number that is no 64-bit integer.
Value computed(Operator sign, const Value& left, const Value& right);
Value with_sign(const Value& value, bool negative);
bool compares(Comparison sign, const Value& left, const Value& right);
bool contains(const Value& container, const Value& value);

}  // namespace teratron::jinja
