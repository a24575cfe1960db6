// Blocks of one instruction: see alone.h.
#include "decode/alone.h"

#include <array>
#include <unordered_map>
#include <vector>

namespace annex::sim {

namespace {

class AloneDecoder final : public Decoder {
 public:
  AloneDecoder(std::unique_ptr<Decoder> decoder, ReadCode read)
      : decoder_(std::move(decoder)), read_(std::move(read)) {}

  Block decode(std::span<const Instruction> instructions) override {
    Block block = decoder_->decode(instructions);
    if (instructions.size() != 1) return block;
    const Instruction& instruction = instructions.front();

    const auto before = compares_.find(instruction.address);
    if (before != compares_.end()) {
      const std::vector<uint8_t>& bytes = before->second;
      const Block pair = together({instruction.address - bytes.size(), bytes}, instruction);
      if (is_one(pair)) {
        block.uops = {pair.uops.back()};
        block.uops.back().first = true;
        block.slots = block.uops.back().fused ? 0 : 1;
        return block;
      }
    }
    const std::span<const uint8_t> after = read_(block.fall_through);
    if (!block.uops.empty() && !after.empty() && is_one(together(instruction, {block.fall_through, after}))) {
      if (!block.uops.back().fused) --block.slots;
      block.uops.pop_back();
      compares_[block.fall_through] = {instruction.bytes.begin(), instruction.bytes.end()};
    } else {
      compares_.erase(block.fall_through);
    }
    return block;
  }

 private:
  Block together(const Instruction& first, const Instruction& second) {
    const std::array both = {first, second};
    return decoder_->decode(both);
  }
  // These two are a compare and its branch, in one micro-op of the compare's.
  static bool is_one(const Block& pair) {
    return pair.end == BlockEnd::kConditional && !pair.uops.empty() && pair.uops.back().instruction == 0;
  }

  std::unique_ptr<Decoder> decoder_;
  ReadCode read_;
  std::unordered_map<Address, std::vector<uint8_t>> compares_;  // that left their micro-op to a branch, by its address
};

}  // namespace

std::unique_ptr<Decoder> make_alone_decoder(std::unique_ptr<Decoder> decoder, ReadCode read) {
  return std::make_unique<AloneDecoder>(std::move(decoder), std::move(read));
}

}  // namespace annex::sim
