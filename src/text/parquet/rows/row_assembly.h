// Rows of a row group from the entries of its columns, as JSON (Melnik et al., "Dremel", 2010, section 4.3, by
// recursion over the schema in the place of a machine of states).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parquet/columns/column_reader.h"
#include "parquet/file/schema.h"

namespace teratron::parquet {

class RowAssembly {
 public:
  // `members`: those of a row to read. A row has at most `most_bytes`. `are_texts`: NoText of bytes that are none.
  RowAssembly(const Schema& schema, std::vector<const Node*> members, std::size_t most_bytes, bool are_texts);

  void begin(const RandomAccessFile& file, const RowGroup& group, PageMemory& memory);
  // Appends the next row, an object. Damaged: columns end before, or disagree about where the row does.
  void append_row(std::string& out);
  // Damaged: a column goes on after the group's last row.
  void end();

 private:
  ColumnReader& first_of(const Node& node) { return *columns_[node.first_leaf]; }
  void append(const Node& node, std::string& out);
  void append_members(const Node& node, std::string& out);
  void append_list(const Node& node, std::string& out);
  void skip(const Node& node);
  void require_size(const std::string& out) const;

  const Schema& schema_;
  std::vector<const Node*> members_;
  std::size_t most_bytes_;
  bool are_texts_;
  std::vector<std::unique_ptr<ColumnReader>> columns_;  // by leaf; null where it is not read
  std::size_t row_begin_ = 0;                           // in the text that a row is appended to
};

}  // namespace teratron::parquet
