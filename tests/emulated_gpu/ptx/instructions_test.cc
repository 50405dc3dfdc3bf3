// Tests
#include <gtest/gtest.h>
