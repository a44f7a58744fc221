# How the project's targets are made: warnings are errors, one static library a folder of lib/.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(dew_options INTERFACE)
target_compile_options(dew_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion
                                             -Wno-sign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(dew_options INTERFACE -Wno-restrict)  # false alarms on std::string (GCC bug 105651)
endif()
target_include_directories(dew_options INTERFACE ${CMAKE_SOURCE_DIR}/lib)
if(DEW_SANITIZE)
  target_compile_options(dew_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                               -fno-omit-frame-pointer)
  target_link_options(dew_options INTERFACE -fsanitize=address,undefined)
endif()

# dew_library(NAME SOURCE...): the library dew_NAME of the folder lib/NAME.
function(dew_library name)
  add_library(dew_${name} STATIC ${ARGN})
  target_link_libraries(dew_${name} PUBLIC dew_options)
endfunction()
