// What the tests of sampled blocks share: how a scenario gets one.
#pragma once

#include <cstddef>
#include <string>

#include "common/scenario.h"

namespace annex_test {

enum class Side { kAny, kEnd, kStart };  // of its page, which a sampled block lies at

// Whether the library knows the block, but no slab or span has it.
bool is_sampled(const void* block);

// Allocates until a block is sampled, which takes some milliseconds. The scenario fails where none is.
char* take_sampled(std::size_t bytes, Side side = Side::kAny);

// A scenario with samples, as many as can be had, and with call stacks.
Outcome run_with_samples(const std::string& scenario);

}  // namespace annex_test
