# Copies HEADERS from FROM to TO, with `#include "nn/linear.h"` written as `#include <teratron/nn/linear.h>`, which no file
# of a user's own can stand in for. A header that is not among them may not be included.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${TO})
foreach(header ${HEADERS})
  file(READ ${FROM}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included "${include}")
    if(NOT included IN_LIST HEADERS)
      message(FATAL_ERROR "src/${header} includes ${included}, which is not installed: include it where it is needed, or "
                          "add it to the headers in packaging/CMakeLists.txt")
    endif()
    string(REPLACE "${include}" "#include <teratron/${included}>" text "${text}")
  endforeach()
  file(WRITE ${TO}/${header} "${text}")
endforeach()
