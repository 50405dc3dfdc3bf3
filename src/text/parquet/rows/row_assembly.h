// Rows of a row group from the entries of its columns, as JSON (Melnik et al., "Dremel", 2010, section 4.3, by
// recursion over the schema instead of a state machine).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parquet/columns/column_reader.h"
#include "parquet/file/schema.h"

namespace teratron::parquet {

// Treatment of bytes that no type calls text.
enum class BytesAs : std::uint8_t {
  kTextOrBase64,  // text where they are UTF-8
  kText,          // NoText: they are not UTF-8
  kBase64,
};

class RowAssembly {
 public:
  // `members`: those of a row to read. A row has at most `most_bytes`.
  RowAssembly(const Schema& schema, const std::vector<const Node*>& members, std::size_t most_bytes);

  // Sets the treatment of bytes in the member of this name; the default is kTextOrBase64. Returns whether all its
  // values are bytes by their type.
  bool read_bytes(std::string_view name, BytesAs as);

  void begin(const RandomAccessFile& file, const RowGroup& group, PageMemory& memory);
  // Appends the next row, an object. Damaged: a column has ended, or columns disagree about where the row ends.
  void append_row(std::string& out);
  // Damaged: a column continues after the group's last row.
  void end();

 private:
  ColumnReader& first_of(const Node& node) { return *columns_[node.first_leaf]; }
  void append(const Node& node, std::string& out);
  void append_value(const Node& leaf, std::string_view value, std::string& out) const;
  void append_members(const Node& node, std::string& out);
  void append_list(const Node& node, std::string& out);
  void skip(const Node& node);
  void require_size(const std::string& out) const;

  const Schema& schema_;
  struct Member {
    const Node* node;
    BytesAs bytes = BytesAs::kTextOrBase64;
  };
  std::vector<Member> members_;
  std::size_t most_bytes_;
  std::vector<std::unique_ptr<ColumnReader>> columns_;  // by leaf; null where it is not read
  std::size_t row_begin_ = 0;                           // in the text that a row is appended to
  BytesAs bytes_ = BytesAs::kTextOrBase64;              // of the member that is appended
};

}  // namespace teratron::parquet
