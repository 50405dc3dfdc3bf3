// Parquet files: what is read is JSON, whatever the bytes.
#include "data/text/json_scanner.h"
#include "fuzz.h"
#include "parquet/row_reader.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  constexpr int kMostRows = 200;  // a number in the file may say any
  parquet::RowReader reader(put("a.parquet", input), {}, kMostBytes);
  std::string row;
  for (int i = 0; i < kMostRows && reader.next(row); ++i) {
    require(is_json(row), "a row is JSON");
    row.clear();
  }
}
