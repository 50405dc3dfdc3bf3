// The folder of what was measured follows the variables that name it.
#include "base/files/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace teratron {
namespace {

// Puts a variable back as it was.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  void set(const char* value) const { setenv(name_, value, 1); }
  void unset() const { unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheFolder, IsTheFirstOfThePlacesThatAreNamed) {
  const Variable cache("XDG_CACHE_HOME"), home("HOME");
  cache.set("/cache");
  home.set("/home/me");
  EXPECT_EQ(user_cache_folder(), "/cache/teratron");
  cache.set("");
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/teratron");
  cache.unset();
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/teratron");
  home.unset();
  EXPECT_TRUE(user_cache_folder().empty());
}

}  // namespace
}  // namespace teratron
