# Removes what `make install` put into a prefix: cmake -D MANIFEST=FILE -D PREFIX=DIRECTORY -P uninstall.cmake
#
# MANIFEST is CMake's list of what the last installation wrote. Files of the same names under PREFIX go, which is another
# place where PREFIX is another, and then the directories named annex, where they are empty. DESTDIR is honoured.
cmake_minimum_required(VERSION 3.22)

file(STRINGS ${MANIFEST} files)
list(FILTER files INCLUDE REGEX "/annex/annex\\.h$")
string(REGEX REPLACE "/[^/]+/annex/annex\\.h$" "" installed "${files}")
file(STRINGS ${MANIFEST} files)

set(directories)
set(removed 0)
foreach(file IN LISTS files)
  string(LENGTH "${installed}" length)
  string(SUBSTRING "${file}" ${length} -1 name)
  set(file $ENV{DESTDIR}${PREFIX}${name})
  if(EXISTS ${file} OR IS_SYMLINK ${file})
    file(REMOVE ${file})
    math(EXPR removed "${removed} + 1")
  endif()
  get_filename_component(directory ${file} DIRECTORY)
  list(APPEND directories ${directory})
endforeach()
list(REMOVE_DUPLICATES directories)
foreach(directory IN LISTS directories)
  get_filename_component(name ${directory} NAME)
  file(GLOB left ${directory}/*)
  if(name STREQUAL "annex" AND NOT left)
    file(REMOVE_RECURSE ${directory})
  endif()
endforeach()
message(STATUS "${removed} files of Annex removed from $ENV{DESTDIR}${PREFIX}")
