// Runs a string of bytes as a sequence of allocator calls against the shadow model.
//
// Each operation is one byte, whose low four bits choose the call, and the operands that it needs:
//
//   0 1 2  malloc(size)             6 7 8 9  free(index)        13  check every block
//   3      calloc(count, size)      10       check(index)       14  heap walk and statistics
//   4      aligned_alloc(a, size)   11       impossible(size)   15  free most blocks
//   5      realloc(index, size)     12       purge
//
// A size takes two bytes: four bits of magnitude and twelve of fraction, so that a small change of
// the input is a small change of the size. An index takes one byte. Input that ends early reads as
// zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace annex_test {

// The empty string, or what was wrong.
std::string interpret(const std::uint8_t* data, std::size_t size);

}  // namespace annex_test
