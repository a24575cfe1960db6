// The hardened build's measures, each of which can be left out to see what it costs (src/experiments.cmake: targets
// annex-hardened-without-...; docs/hardened.md has the table). All are in the library that is shipped.
#pragma once

namespace annex::harden {

#ifndef ANNEX_WITHOUT
#define ANNEX_WITHOUT kNothing
#endif

enum class Measure { kNothing, kCanaries, kZeroing, kChecks, kQuarantine };
inline constexpr Measure kLeftOut = Measure::ANNEX_WITHOUT;

inline constexpr bool kHasCanaries = kLeftOut != Measure::kCanaries;
inline constexpr bool kZeroes = kLeftOut != Measure::kZeroing;                // what is freed
inline constexpr bool kChecksZero = kZeroes && kLeftOut != Measure::kChecks;  // what is handed out
inline constexpr bool kHasQuarantine = kLeftOut != Measure::kQuarantine;

}  // namespace annex::harden
