// Tables of contents that contradict themselves, written in Thrift's compact protocol.
#include "parquet/file/footer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/message_of.h"
#include "parquet/file/fault.h"

namespace teratron::testing {
namespace {

using namespace parquet;
using ::testing::HasSubstr;

std::string thrift_number(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields with their whole ids, so that they may come in any order; `type` is the protocol's.
std::string field(int id, char type, const std::string& value) {
  return type + thrift_number(2 * static_cast<std::uint64_t>(id)) + value;
}
std::string small(int id, int value) { return field(id, 5, thrift_number(2 * static_cast<std::uint64_t>(value))); }
std::string large(int id, std::int64_t value) {
  return field(id, 6, thrift_number(2 * static_cast<std::uint64_t>(value)));
}
std::string ended(const std::string& fields) { return fields + '\0'; }
std::string structs(int id, const std::vector<std::string>& all) {
  std::string bytes(1, static_cast<char>(all.size() << 4 | 12));
  for (const std::string& one : all) bytes += one;
  return field(id, 9, bytes);
}

std::string root(int children) { return ended(field(4, 8, "\1r") + small(5, children)); }
std::string numbers() { return ended(small(1, 1) + field(4, 8, "\1n")); }  // a column
std::string chunk() { return ended(field(3, 12, ended(small(1, 1) + large(5, 2) + large(7, 9) + large(9, 4)))); }
std::string row_group(const std::vector<std::string>& chunks) { return ended(structs(1, chunks) + large(3, 2)); }

Footer parsed(const std::string& fields) { return parse_footer(ended(fields), 100); }
std::string damage_of(const std::string& fields) {
  return message_of<Damaged>([&] { parsed(fields); });
}

TEST(ParquetFooter, HasItsFieldsInAnyOrder) {
  const std::string rows = large(3, 2), schema = structs(2, {root(1), numbers()}),
                    groups = structs(4, {row_group({chunk()})});
  for (const std::string& fields : {rows + schema + groups, groups + schema + rows}) {
    const Footer footer = parsed(fields);
    EXPECT_EQ(footer.schema.size(), 2U);
    ASSERT_EQ(footer.row_groups.size(), 1U);
    EXPECT_EQ(footer.row_groups[0].columns.size(), 1U);
    EXPECT_EQ(footer.rows, 2);
  }
}

TEST(ParquetFooter, IsRefusedWhereRowGroupsHaveNotTheSchemasColumns) {
  const std::string rows = large(3, 2), schema = structs(2, {root(2), numbers()}), more = structs(2, {numbers()});
  const std::string groups = structs(4, {row_group({chunk()})}), none = structs(2, {});
  EXPECT_THAT(damage_of(rows + schema + groups + more), HasSubstr("two schemas"));
  EXPECT_THAT(damage_of(rows + none + groups + schema), HasSubstr("two schemas"));
  EXPECT_THAT(damage_of(rows + schema + groups + structs(4, {})), HasSubstr("row groups twice"));
  EXPECT_THAT(damage_of(rows + structs(2, {root(2), numbers(), numbers()}) + groups), HasSubstr("schema's columns"));
  EXPECT_THAT(damage_of(rows + schema + structs(4, {row_group({chunk(), chunk()})})), HasSubstr("schema's columns"));
}

}  // namespace
}  // namespace teratron::testing
