# Writes cli/commit.h's kCommit, the commit that is built, for `annex --version`: cmake -D SOURCE=TREE -D OUTPUT=FILE -P commit.cmake
#
# " (1a2b3c4d5e6f)", with the nearest tag before it where there is one and "-dirty" after it where files were changed since;
# from an archive that git made, what git put into commit.txt; from any other, nothing. A tree that lies within somebody
# else's repository has no commit of that.
cmake_minimum_required(VERSION 3.22)

set(commit "")
find_program(git NAMES git NO_CACHE)
if(git AND EXISTS ${SOURCE}/.git)
  # safe.directory: `sudo make install` reads what belongs to somebody else.
  execute_process(COMMAND ${git} -c safe.directory=* -C ${SOURCE} describe --always --dirty --abbrev=12 --tags
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt commit REGEX "^[0-9a-f]+$")
endif()
if(commit)
  set(commit " (${commit})")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "namespace annex::cli {
extern const char kCommit[];
const char kCommit[] = \"@commit@\";
}
" @ONLY)
