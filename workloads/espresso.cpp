// A two-level logic minimizer: expand, irredundant, reduce, until nothing gets better.
// Stands for: espresso (Brayton et al., Logic Minimization Algorithms for VLSI Synthesis, 1984), the classic allocation
// trace of Grunwald and Zorn, used by the mimalloc, SpeedMalloc and Exgen-Malloc papers: recursion over lists of small
// sets, most of which die young.

#include <algorithm>

#include "cover.h"

using workload::copy_of;
using workload::Cover;
using workload::Cube;
using workload::g_variables;
using workload::g_words;
using workload::literal;
using workload::new_cube;
using workload::Random;
using workload::set_literal;

namespace {

uint64_t g_recursions = 0;

// The variable on which most cubes depend, both ways if possible; g_variables where none depends on any.
uint32_t splitting_variable(const Cover& cover) {
  uint32_t best = g_variables;
  uint64_t best_score = 0;
  for (uint32_t v = 0; v < g_variables; ++v) {
    uint64_t falses = 0;
    uint64_t trues = 0;
    for (uint32_t i = 0; i < cover.size(); ++i) {
      const uint32_t value = literal(cover[i], v);
      falses += value == 1;
      trues += value == 2;
    }
    const uint64_t score = falses + trues + 1000 * std::min(falses, trues);
    if (score > best_score) {
      best = v;
      best_score = score;
    }
  }
  return best;
}

Cover half_of(const Cover& cover, uint32_t variable, uint64_t value) {
  Cube* half = new_cube();
  workload::make_universe(half);
  set_literal(half, variable, value);
  Cover result = cover.cofactor(half);
  free(half);
  return result;
}

bool has_universe(const Cover& cover) {
  for (uint32_t i = 0; i < cover.size(); ++i) {
    if (workload::is_universe(cover[i])) return true;
  }
  return false;
}

bool is_tautology(const Cover& cover) {
  ++g_recursions;
  if (has_universe(cover)) return true;
  const uint32_t variable = splitting_variable(cover);
  if (variable == g_variables) return false;
  return is_tautology(half_of(cover, variable, 1)) && is_tautology(half_of(cover, variable, 2));
}

// The complement, by Shannon's expansion; cubes that both halves have in common are merged.
Cover complement(const Cover& cover) {
  ++g_recursions;
  Cover result;
  if (has_universe(cover)) return result;
  const uint32_t variable = splitting_variable(cover);
  if (variable == g_variables) {
    Cube* all = new_cube();
    workload::make_universe(all);
    result.add(all);
    return result;
  }
  Cover falses = complement(half_of(cover, variable, 1));
  Cover trues = complement(half_of(cover, variable, 2));
  while (falses.size() > 0) {
    Cube* cube = falses.take(falses.size() - 1);
    uint32_t twin = 0;
    while (twin < trues.size() && !workload::same(cube, trues[twin])) ++twin;
    if (twin < trues.size()) {
      free(trues.take(twin));
    } else {
      set_literal(cube, variable, 1);
    }
    result.add(cube);
  }
  while (trues.size() > 0) {
    Cube* cube = trues.take(trues.size() - 1);
    set_literal(cube, variable, 2);
    result.add(cube);
  }
  return result;
}

// Makes each cube as large as it can be without meeting `off`, then drops those that another contains.
void expand(Cover& cover, const Cover& off) {
  Cover result;
  while (cover.size() > 0) {
    Cube* cube = cover.take(cover.size() - 1);
    for (uint32_t v = 0; v < g_variables; ++v) {
      const uint32_t before = literal(cube, v);
      if (before == 3) continue;
      Cube* larger = copy_of(cube);
      set_literal(larger, v, 3);
      bool free_of_off = true;
      for (uint32_t i = 0; i < off.size() && free_of_off; ++i) free_of_off = !workload::intersects(larger, off[i]);
      if (free_of_off) std::swap(cube, larger);
      free(larger);
    }
    for (uint32_t i = 0; i < cover.size();) {
      if (workload::contains(cube, cover[i])) {
        free(cover.take(i));
      } else {
        ++i;
      }
    }
    result.add(cube);
  }
  cover = std::move(result);
}

// Drops every cube that the others cover together.
void irredundant(Cover& cover) {
  for (uint32_t i = 0; i < cover.size();) {
    Cube* cube = cover.take(i);
    if (is_tautology(cover.cofactor(cube))) {
      free(cube);
      continue;
    }
    cover.add(cube);  // goes to the end; swap it back so that every cube is looked at once
    std::swap(*cover[i], *cover[cover.size() - 1]);
    for (uint32_t w = 1; w < g_words; ++w) std::swap(cover[i][w], cover[cover.size() - 1][w]);
    ++i;
  }
}

// Shrinks each cube to what only it covers, so that the next expansion can take another direction.
void reduce(Cover& cover) {
  for (uint32_t n = cover.size(); n > 0; --n) {
    Cube* cube = cover.take(0);
    const Cover missing = complement(cover.cofactor(cube));
    Cube* needed = new_cube();
    memset(needed, 0, g_words * sizeof(uint64_t));
    for (uint32_t i = 0; i < missing.size(); ++i) {
      for (uint32_t w = 0; w < g_words; ++w) needed[w] |= missing[i][w];
    }
    if (missing.size() > 0) {
      for (uint32_t w = 0; w < g_words; ++w) cube[w] &= needed[w];
    }
    free(needed);
    cover.add(cube);
  }
}

Cover minimize(const Cover& on) {
  Cover best = on.copy();
  const Cover off = complement(on);
  expand(best, off);
  irredundant(best);
  for (int round = 0; round < 3; ++round) {
    Cover next = best.copy();
    reduce(next);
    expand(next, off);
    irredundant(next);
    if (next.size() >= best.size()) break;
    best = std::move(next);
  }
  return best;
}

// A random function: cubes with a few literals each.
Cover random_function(Random& random, uint32_t cubes) {
  Cover cover;
  for (uint32_t i = 0; i < cubes; ++i) {
    Cube* cube = new_cube();
    workload::make_universe(cube);
    for (uint32_t n = random.between(g_variables / 2, g_variables); n > 0; --n)
      set_literal(cube, random.below(g_variables), 1 + random.below(2));
    cover.add(cube);
  }
  return cover;
}

// Both covers must agree on random points.
void check_same_function(Random& random, const Cover& a, const Cover& b) {
  Cube* point = new_cube();
  for (int i = 0; i < 2000; ++i) {
    workload::make_universe(point);
    for (uint32_t v = 0; v < g_variables; ++v) set_literal(point, v, 1 + random.below(2));
    workload::require(a.covers_point(point) == b.covers_point(point), "the minimized function differs");
  }
  free(point);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "A two-level logic minimizer (espresso).");
  options.one_thread();
  const uint64_t functions = options.work("--functions", 180, "functions to minimize");
  const uint32_t cubes = options.count("--cubes", 120, "cubes of a function before minimization");
  g_variables = options.count("--variables", 14, "variables of a function");
  options.done();

  g_words = g_variables / workload::kPerWord + 1;
  Random random(3);
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t i = 0; i < functions; ++i) {
      const Cover on = random_function(random, cubes);
      const Cover small = minimize(on);
      workload::require(small.size() <= on.size(), "the minimized function is larger");
      check_same_function(random, on, small);
      checksum = checksum * 1000 + small.size();
    }
  });
  workload::report("espresso", g_recursions, seconds, checksum);
}
