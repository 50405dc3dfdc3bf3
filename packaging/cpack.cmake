# Read by cpack before it packs.
find_program(shlibdeps dpkg-shlibdeps)
if(NOT shlibdeps AND CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS)  # cpack would leave the dependencies out without a word
  message(FATAL_ERROR "dpkg-shlibdeps, which finds what the program needs, is missing; install dpkg-dev")
endif()
