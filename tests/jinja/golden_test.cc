// Small templates as jinja2 writes them (tests/golden/make_jinja_golden.py), and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "jinja/rendered.h"

namespace teratron::testing {
namespace {

using namespace jinja;
using ::testing::HasSubstr;
using OrderedJson = nlohmann::ordered_json;

OrderedJson golden() {
  return OrderedJson::parse(read_file(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/jinja.json"));
}

TEST(JinjaGolden, WritesWhatJinjaWritesAndFailsWhereItFails) {
  const OrderedJson all = golden();
  ASSERT_GT(all.at("alike").size(), 100U);
  for (const OrderedJson& one : all.at("alike")) {
    const std::string source = one.at("source");
    if (one.contains("error")) {
      EXPECT_THROW(rendered(source, all.at("variables")), Error) << source << one.at("error");
      continue;
    }
    try {
      EXPECT_EQ(OrderedJson(rendered(source, all.at("variables"))).dump(), one.at("text").dump()) << source;
    } catch (const Error& error) {
      ADD_FAILURE() << source << "\n" << error.what();
    }
  }
}

TEST(JinjaGolden, RefusesByNameWhatItHasNot) {
  const OrderedJson all = golden();
  for (const OrderedJson& one : all.at("refused")) {
    const std::string source = one.at("source"), names = one.at("names");
    try {
      ADD_FAILURE() << source << " writes " << rendered(source, all.at("variables"));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(names)) << source;
      EXPECT_THAT(error.what(), HasSubstr("line 1")) << source;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
