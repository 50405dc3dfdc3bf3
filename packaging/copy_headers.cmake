# Copies HEADERS (paths src/WING/ROOM/FILE) to TO/ROOM/FILE, with `#include "nn/linear.h"` written as
# `#include <teratron/nn/linear.h>`, which no file of a user's own can stand in for. A header that is not among them may
# not be included.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${TO})
list(TRANSFORM HEADERS REPLACE "^.*/src/[a-z]+/" "" OUTPUT_VARIABLE names)
foreach(header name IN ZIP_LISTS HEADERS names)
  file(READ ${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included "${include}")
    if(NOT included IN_LIST names)
      message(FATAL_ERROR "${header} includes ${included}, which is not installed: include it where it is needed, or "
                          "add it to the headers in packaging/CMakeLists.txt")
    endif()
    string(REPLACE "${include}" "#include <teratron/${included}>" text "${text}")
  endforeach()
  file(WRITE ${TO}/${name} "${text}")
endforeach()
