// The bytes' meaning; see interpreter.h.
#include "fuzz/interpreter.h"

#include "property/model.h"

namespace annex_test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool done() const { return at_ == end_; }
  std::uint8_t byte() { return done() ? 0 : *at_++; }

  // Half of all values are a size below 4 KiB, each of which is reachable; the largest is just
  // below 4 MiB.
  std::size_t bytes() {
    const std::size_t word = byte() | std::size_t{byte()} << 8;
    const std::size_t magnitude = word >> 12;
    const std::size_t fraction = word & 0xFFF;
    if (magnitude < 8) return fraction;
    if (magnitude < 15) return (std::size_t{4096} + fraction) << (magnitude - 8);
    return (std::size_t{4096} + fraction) << 9;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// Powers of two up to 4 MiB, and some that are none.
std::size_t alignment_from(std::uint8_t byte) {
  const std::size_t power = std::size_t{1} << (byte % 23);
  return byte < 0xF0 ? power : power + byte % 3;
}

}  // namespace

std::string interpret(const std::uint8_t* data, std::size_t size) {
  Reader in(data, size);
  Model model(48 * kMiB, 4000);
  while (!in.done() && model.failure() == nullptr) {
    const std::uint8_t operation = in.byte();
    switch (operation & 15) {
      case 0:
      case 1:
      case 2:
        model.allocate(in.bytes());
        break;
      case 3: {
        const std::size_t count = in.byte();
        // Mostly small products, some that overflow.
        model.allocate_zeroed(count < 250 ? count % 8 : SIZE_MAX / 2 + count, in.bytes());
        break;
      }
      case 4: {
        const std::size_t alignment = alignment_from(in.byte());
        model.allocate_aligned(alignment, in.bytes());
        break;
      }
      case 5: {
        const std::size_t index = in.byte();
        model.reallocate(index, in.bytes());
        break;
      }
      case 10:
        model.check(in.byte());
        break;
      case 11:
        model.impossible(SIZE_MAX / 2 + 1 + in.bytes());
        break;
      case 12:
        model.purge();
        break;
      case 13:
        // Slow, so most values of the upper bits mean something else.
        if (operation < 32) {
          model.check_all();
        } else {
          model.check(operation);
        }
        break;
      case 14:
        model.check_walk();
        model.check_stats();
        break;
      case 15:
        for (std::size_t left = model.blocks() - model.blocks() / 4; left > 0; --left) {
          model.release(operation & 16 ? left : left * 7);
        }
        break;
      default: {
        // From the young end or from the old one.
        const std::size_t index = in.byte();
        if (model.blocks() == 0) break;
        model.release(operation & 16 ? model.blocks() - 1 - index % model.blocks() : index);
      }
    }
  }
  model.check_all();
  model.check_walk();
  model.release_all();
  return model.failure() == nullptr ? std::string() : std::string(model.failure());
}

}  // namespace annex_test
