// The schema as a tree of values as JSON has them: objects, lists, maps and leaves, each of which has a column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parquet/file/footer.h"

namespace teratron::parquet {

// A column. An entry of it has two levels (Melnik et al., "Dremel", 2010, section 4.1). The definition level counts the
// optional and repeated ancestors that are present, so an entry below max_definition has no value. The
// repetition level is the depth of the list that the entry continues; 0 begins a row.
struct Leaf {
  std::string path;  // "messages.list.element.role"
  SchemaElement element;
  int max_definition = 0, max_repetition = 0;
};

struct Node {
  enum class Kind : std::uint8_t { kLeaf, kStruct, kList, kMap };

  Kind kind = Kind::kLeaf;
  std::string name;
  int definition = 0;                          // entries with less than this level are null here
  int element_definition = 0, repetition = 0;  // kList and kMap: of an entry in an element; of its second one
  std::vector<Node> children;                  // kStruct: members; kList: the element; kMap: key and value
  std::size_t first_leaf = 0, end_leaf = 0;    // its columns
};

struct Schema {
  std::vector<Leaf> leaves;
  std::vector<Node> members;  // of a row
};

// Lists and maps are recognised in all their forms (LogicalTypes.md of parquet-format: "Lists", "Backward-compatibility
// rules"); a repeated field that is annotated as neither is a list. Damaged: the elements are no tree. Unsupported:
// rows or groups without columns; groups nested deeper than 64; a column whose names with those of its groups have over
// 4096 bytes.
Schema make_schema(const std::vector<SchemaElement>& elements);

}  // namespace teratron::parquet
