# $label: made by `solver export`; not to be edited. As part of another project: add_subdirectory(), then
# target_link_libraries(... ${name}_policy).
cmake_minimum_required(VERSION 3.15)
project(${name}_policy VERSION $version LANGUAGES C)

set(${NAME}_REAL "" CACHE STRING "Number type: float or double; by default float on a chip without an operating system")

add_library(${name}_policy $sources_in_lines)
target_include_directories(${name}_policy PUBLIC "$${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_features(${name}_policy PUBLIC c_std_99)
set_target_properties(${name}_policy PROPERTIES POSITION_INDEPENDENT_CODE ON WINDOWS_EXPORT_ALL_SYMBOLS ON)
if(${NAME}_REAL)
  target_compile_definitions(${name}_policy PUBLIC ${NAME}_REAL=$${${NAME}_REAL})
endif()
if(UNIX)
  target_link_libraries(${name}_policy PUBLIC m)
endif()

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR AND NOT CMAKE_CROSSCOMPILING)
  add_executable(${name}_policy_replay ${name}_policy_replay.c)
  target_link_libraries(${name}_policy_replay ${name}_policy)
  enable_testing()
  add_test(NAME ${name}_policy_replay COMMAND ${name}_policy_replay)
endif()
