// A decoder of blocks of one instruction, as lock-step runs them: together they have the micro-ops of the program's own
// blocks.
//
// Where a compare and the branch after it are one micro-op, which depends on both, it goes with the branch. So the
// compare is looked at with what follows it in memory, and the branch with the compare before it.
//
// Simplification: a branch that is jumped to, past the compare before it, is taken for the pair too.
#pragma once

#include <functional>
#include <memory>

#include "decode/decoder.h"

namespace annex::sim {

// The bytes of code from an address on, as many as an instruction may have; fewer, or none, where there is no more.
using ReadCode = std::function<std::span<const uint8_t>(Address)>;

std::unique_ptr<Decoder> make_alone_decoder(std::unique_ptr<Decoder> decoder, ReadCode read);

}  // namespace annex::sim
