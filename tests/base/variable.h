// A variable of the environment that a test changes.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace teratron::testing {

// Puts it back as it was.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  void set(const char* value) const { ::setenv(name_, value, 1); }
  void unset() const { ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace teratron::testing
