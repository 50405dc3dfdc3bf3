#include "parquet/row_reader.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files/random_access_file.h"
#include "parquet/rows/row_assembly.h"

namespace teratron::parquet {
namespace {

std::vector<const Node*> members_of(const Schema& schema, std::span<const std::string> names) {
  std::vector<const Node*> all, wanted;
  for (const Node& member : schema.members) {
    all.push_back(&member);
    if (std::ranges::find(names, member.name) != names.end()) wanted.push_back(&member);
  }
  return wanted.empty() ? all : wanted;
}

// Calls `read`; its faults become errors with the file's name and, from 1 on, the row's number.
template <class Read>
auto with_place(const std::filesystem::path& path, std::int64_t row, const Read& read) {
  const std::string place = row > 0 ? fmt::format(" in row {}", row) : "";
  try {
    return read();
  } catch (const Damaged& fault) {
    throw_user_error("'{}' is damaged{}: {}; copy or download it again", path.string(), place, fault.what());
  } catch (const Unsupported& fault) {
    throw_user_error(
        "'{}' cannot be read{}: it has {}; write it again, for example with pyarrow.parquet: "
        "write_table(read_table('a.parquet'), 'b.parquet', row_group_size=1000)",
        path.string(), place, fault.what());
  } catch (const NoText& fault) {
    throw_user_error(
        "'{}'{} has no text in the column '{}', but bytes in another encoding; write them as UTF-8, for example with "
        "pandas: frame['{}'].str.decode('windows-1252')",
        path.string(), place, fault.what(), fault.what());
  }
}

}  // namespace

struct RowReader::File {
  File(const std::filesystem::path& path, std::span<const std::string> columns, std::size_t most_bytes)
      : file(path),
        footer(with_place(path, 0, [&] { return read_footer(file); })),
        schema(with_place(path, 0, [&] { return make_schema(footer.schema); })),
        memory(2 * most_bytes),
        assembly(schema, members_of(schema, columns), most_bytes) {}

  std::int64_t left_in_group() const { return footer.row_groups[group].rows - row_in_group; }

  void append_row(std::string& out) {
    if (row_in_group == 0) assembly.begin(file, footer.row_groups[group], memory);
    assembly.append_row(out);
    ++row;
    ++row_in_group;
    if (left_in_group() == 0) {
      assembly.end();
      next_group();
    }
  }

  void next_group() {
    ++group;
    row_in_group = 0;
    while (group < footer.row_groups.size() && footer.row_groups[group].rows == 0) ++group;
  }

  RandomAccessFile file;
  Footer footer;
  Schema schema;
  PageMemory memory;
  RowAssembly assembly;  // its columns count in `memory`
  std::size_t group = 0;
  std::int64_t row = 0, row_in_group = 0;  // that are read
};

RowReader::RowReader(const std::filesystem::path& file, std::span<const std::string> columns, std::size_t most_bytes)
    : file_(std::make_unique<File>(file, columns, most_bytes)) {
  if (!file_->footer.row_groups.empty() && file_->footer.row_groups[0].rows == 0) file_->next_group();
  take_texts(columns);
}

RowReader::~RowReader() = default;

void RowReader::take_texts(std::span<const std::string> columns) {
  for (const std::string& column : columns) file_->assembly.read_bytes(column, BytesAs::kText);
}

bool RowReader::take_bytes(std::string_view column) { return file_->assembly.read_bytes(column, BytesAs::kBase64); }

std::int64_t RowReader::rows() const { return file_->footer.rows; }

bool RowReader::next(std::string& out) {
  if (file_->row == rows()) return false;
  with_place(file_->file.path(), file_->row + 1, [&] { file_->append_row(out); });
  return true;
}

void RowReader::skip(std::int64_t rows) {
  for (std::string row; rows > 0 && file_->row < this->rows();) {
    const std::int64_t left = file_->left_in_group();
    if (left <= rows) {
      rows -= left;
      file_->row += left;
      file_->next_group();
      continue;
    }
    row.clear();
    next(row);
    --rows;
  }
}

std::int64_t RowReader::bytes_taken() const {
  if (rows() == 0) return static_cast<std::int64_t>(file_->file.size());
  const double share = static_cast<double>(file_->row) / static_cast<double>(rows());
  return static_cast<std::int64_t>(share * static_cast<double>(file_->file.size()));
}

}  // namespace teratron::parquet
