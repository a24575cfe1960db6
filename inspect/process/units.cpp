// Numbers for people: see units.h.
#include "process/units.h"

#include <fmt/format.h>

#include <cmath>

namespace annex::inspect {

namespace {

constexpr double kMiB = 1 << 20;

}  // namespace

std::string in_units(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024 ? fmt::format("{:.2f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

std::string change_in_units(double bytes) {
  return fmt::format("{}{}", bytes < 0 ? '-' : '+', in_units(static_cast<uint64_t>(std::llround(std::abs(bytes)))));
}

}  // namespace annex::inspect
