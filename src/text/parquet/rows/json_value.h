// A value of a column as JSON has it.
#pragma once

#include <string>
#include <string_view>

#include "parquet/file/footer.h"

namespace teratron::parquet {

// Appends a value, given by its bytes in the PLAIN encoding:
//  - numbers in the fewest digits that give them back, with a point where they are floating-point; NaN and infinity as
//    null; decimals with all their digits;
//  - dates and times by ISO 8601: "2013-05-18", "05:46:24", "2013-05-18T05:46:24.5", with a Z if it is an instant;
//  - text as a string, also bytes without a logical type if they are UTF-8; other bytes in base64.
// Unsupported: intervals, and decimals of more than 256 bits.
void append_json_value(const SchemaElement& element, std::string_view value, std::string& out);

}  // namespace teratron::parquet
