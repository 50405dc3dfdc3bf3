// Lists and maps in the forms that writers gave them over the years (LogicalTypes.md of parquet-format).
#include "parquet/file/schema.h"

#include <gtest/gtest.h>

#include "parquet/file/fault.h"

namespace teratron::testing {
namespace {

using namespace parquet;

constexpr auto kRequired = Repetition::kRequired, kOptional = Repetition::kOptional, kRepeated = Repetition::kRepeated;

SchemaElement column(const char* name, Repetition repetition, PhysicalType type = PhysicalType::kInt32) {
  return {.name = name, .type = type, .repetition = repetition};
}

SchemaElement group(const char* name, Repetition repetition, std::int32_t children, Meaning meaning = Meaning::kPlain) {
  return {.name = name, .repetition = repetition, .children = children, .meaning = meaning};
}

std::string shape_of(const Node& node, const Schema& schema) {
  std::string inside;
  for (const Node& child : node.children) inside += (inside.empty() ? "" : ", ") + shape_of(child, schema);
  const std::string levels = std::to_string(node.definition);
  switch (node.kind) {
    case Node::Kind::kLeaf: return node.name + ":" + std::to_string(schema.leaves[node.first_leaf].max_definition);
    case Node::Kind::kStruct: return node.name + ":" + levels + "{" + inside + "}";
    case Node::Kind::kList: return node.name + ":" + levels + "[" + inside + "]";
    case Node::Kind::kMap: return node.name + ":" + levels + "<" + inside + ">";
  }
  return "";
}

// The members of a row, with the definition level from which each is there.
std::string shape_of(std::vector<SchemaElement> elements, std::int32_t members = 1) {
  elements.insert(elements.begin(), group("schema", kRequired, members));
  const Schema schema = make_schema(elements);
  std::string shape;
  for (const Node& member : schema.members) shape += (shape.empty() ? "" : " ") + shape_of(member, schema);
  return shape;
}

TEST(ParquetSchema, HasListsInTodaysForm) {
  EXPECT_EQ(
      shape_of({group("a", kOptional, 1, Meaning::kList), group("list", kRepeated, 1), column("element", kOptional)}),
      "a:1[element:3]");
  EXPECT_EQ(
      shape_of({group("a", kRequired, 1, Meaning::kList), group("list", kRepeated, 1), column("element", kRequired)}),
      "a:0[element:1]");
}

TEST(ParquetSchema, HasListsInOlderForms) {
  EXPECT_EQ(shape_of({group("a", kOptional, 1, Meaning::kList), column("array", kRepeated)}), "a:1[:2]");
  EXPECT_EQ(shape_of({group("a", kOptional, 1, Meaning::kList), group("tuple", kRepeated, 2), column("x", kRequired),
                      column("y", kOptional)}),
            "a:1[:2{x:2, y:3}]");
  EXPECT_EQ(shape_of({group("a", kOptional, 1, Meaning::kList), group("array", kRepeated, 1), column("x", kOptional)}),
            "a:1[:2{x:3}]");
  EXPECT_EQ(
      shape_of({group("a", kOptional, 1, Meaning::kList), group("a_tuple", kRepeated, 1), column("x", kOptional)}),
      "a:1[:2{x:3}]");
  EXPECT_EQ(shape_of({group("a", kOptional, 1, Meaning::kList), group("array", kRepeated, 1, Meaning::kList),
                      column("array", kRepeated)}),
            "a:1[:2[:3]]");
}

TEST(ParquetSchema, HasRepeatedFieldsWithoutAnAnnotationAsLists) {
  EXPECT_EQ(shape_of({column("a", kRepeated), column("b", kOptional)}, 2), "a:0[:1] b:1");
  EXPECT_EQ(shape_of({group("a", kRepeated, 1), column("x", kRepeated)}), "a:0[:1{x:1[:2]}]");
}

TEST(ParquetSchema, HasMapsAndWhatOnlyLooksLikeThem) {
  EXPECT_EQ(shape_of({group("m", kOptional, 1, Meaning::kMap), group("key_value", kRepeated, 2),
                      column("key", kRequired), column("value", kOptional)}),
            "m:1<key:2, value:3>");
  EXPECT_EQ(
      shape_of({group("m", kOptional, 1, Meaning::kMap), group("key_value", kRepeated, 1), column("key", kRequired)}),
      "m:1[key:2]");
  EXPECT_EQ(shape_of({group("m", kOptional, 2, Meaning::kMap), column("a", kRequired), column("b", kRequired)}),
            "m:1{a:1, b:1}");
}

TEST(ParquetSchema, IsRefusedWhereItIsNoTree) {
  EXPECT_THROW(make_schema({column("schema", kRequired)}), Damaged);
  EXPECT_THROW(shape_of({column("a", kRequired)}, 2), Damaged);
  EXPECT_THROW(shape_of({column("a", kRequired), column("b", kRequired)}), Damaged);
  EXPECT_THROW(shape_of({group("a", kRequired, 0)}), Unsupported);
  EXPECT_THROW(shape_of({}, 0), Unsupported) << "whose rows would have no end, whatever their number";
  std::vector<SchemaElement> deep(100, group("a", kOptional, 1));
  deep.push_back(column("b", kOptional));
  EXPECT_THROW(shape_of(deep), Unsupported);
  const std::string long_name(3000, 'n');  // whose copies for each column could fill any memory
  EXPECT_THROW(shape_of({group(long_name.c_str(), kOptional, 1), column(long_name.c_str(), kOptional)}), Unsupported);
}

}  // namespace
}  // namespace teratron::testing
