// The folder of what was measured follows the variables that name it.
#include "base/files/cache_folder.h"

#include <gtest/gtest.h>

#include "base/variable.h"

namespace teratron::testing {
namespace {

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
}  // namespace teratron::testing
