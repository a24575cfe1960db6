// Blocks of 1 to 64 MiB, twelve of them alive: random ones replaced by malloc or calloc, grown and shrunk by realloc.
// Stands for: programs that hold a few large buffers of changing sizes (images, columns, matrices, frames). Sizes are
// drawn evenly by their logarithm, so that small ones are as frequent as large ones. A byte of every page of what is
// new is written, and read again when the block goes; of a block that has been resized, what it held must be there.

#include <cmath>

#include "workload.h"

using workload::Random;

namespace {

constexpr size_t kStride = 4096;

struct Buffer {
  unsigned char* data = nullptr;
  size_t size = 0;
  uint32_t tag = 0;
};

unsigned char expected(const Buffer& buffer, size_t at) {
  return static_cast<unsigned char>(buffer.tag + at / kStride);
}

void write(Buffer& buffer, size_t from) {
  for (size_t at = (from + kStride - 1) / kStride * kStride; at < buffer.size; at += kStride) {
    buffer.data[at] = expected(buffer, at);
  }
}

void check(const Buffer& buffer) {
  bool good = true;
  for (size_t at = 0; at < buffer.size; at += kStride) good = good && buffer.data[at] == expected(buffer, at);
  workload::require(good, "a buffer's content changed");
}

void replace(Buffer& buffer, size_t size, uint32_t tag, bool zeroed) {
  if (buffer.data != nullptr) check(buffer);
  free(buffer.data);
  buffer = {static_cast<unsigned char*>(zeroed ? calloc(size, 1) : malloc(size)), size, tag};
  workload::require(buffer.data != nullptr, "no memory");
  if (zeroed) workload::require(buffer.data[size / 2] == 0 && buffer.data[size - 1] == 0, "calloc's block is not zero");
  write(buffer, 0);
}

void resize(Buffer& buffer, size_t size) {
  const size_t before = buffer.size;
  buffer.data = static_cast<unsigned char*>(realloc(buffer.data, size));
  workload::require(buffer.data != nullptr, "no memory");
  buffer.size = size;
  if (size > before) write(buffer, before);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Large buffers of changing sizes, with realloc (large-churn).");
  options.one_thread();
  const uint64_t count = options.work("--changes", 1500, "buffers replaced or resized");
  const uint32_t alive = options.count("--alive", 12, "buffers alive at a time");
  const uint32_t min_mib = options.count("--min", 1, "smallest buffer in MiB");
  const uint32_t max_mib = options.count("--max", 64, "largest buffer in MiB");
  options.done();
  workload::Options::accept(alive >= 1, "--alive must be 1 or more");
  workload::Options::accept(min_mib >= 1 && min_mib <= max_mib && max_mib < 4096,
                            "--min must be 1 or more, and --max no less");

  Random random(42);
  const double doublings = std::log2(static_cast<double>(max_mib) / min_mib);
  const auto size = [&] {
    const double exponent = doublings * static_cast<double>(random.between(0, 1u << 20)) / (1u << 20);
    return static_cast<size_t>(std::exp2(exponent) * static_cast<double>(size_t{min_mib} << 20));
  };
  std::vector<Buffer> buffers(alive);
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t i = 0; i < count; ++i) {
      Buffer& buffer = buffers[random.below(alive)];
      const uint64_t kind = random.below(8);  // of eight changes three are by realloc, one by calloc
      if (kind < 3 && buffer.data != nullptr) {
        resize(buffer, size());
      } else {
        replace(buffer, size(), static_cast<uint32_t>(i), kind == 3);
      }
      checksum += buffer.size;
    }
    for (Buffer& buffer : buffers) {
      if (buffer.data != nullptr) check(buffer);
      free(buffer.data);
    }
  });
  workload::report("large-churn", count, seconds, checksum);
}
