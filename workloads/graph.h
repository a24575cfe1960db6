// A synthetic undirected graph, made from edge lists into adjacency lists, and what level-synchronous searches through
// it by several threads share. Built the same, whatever the number of threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>

#include "workload.h"

namespace workload {

using Vertex = uint32_t;

// Hands out the numbers 0 .. end - 1 in runs, to whichever thread asks.
class Shares {
 public:
  explicit Shares(uint32_t run) : run_(run) {}
  void reset(uint32_t end) {
    end_ = end;
    next_.store(0, std::memory_order_relaxed);
  }

  // Calls work(i) for every number of the runs that this thread gets.
  template <typename Work>
  void each(Work&& work) {
    for (;;) {
      const uint64_t begin = next_.fetch_add(run_, std::memory_order_relaxed);
      if (begin >= end_) return;
      const uint64_t end = std::min<uint64_t>(begin + run_, end_);
      for (uint64_t i = begin; i < end; ++i) work(static_cast<uint32_t>(i));
    }
  }

 private:
  uint32_t run_;
  uint32_t end_ = 0;
  std::atomic<uint64_t> next_{0};
};

class Graph {
 public:
  // Uniformly random edges, or Kronecker's (R-MAT with the GAP suite's probabilities: 57, 19, 19 and 5 in 100).
  // Loops and double edges are dropped, as there; `degree` is the average before that.
  Graph(uint32_t vertices, uint32_t degree, bool kronecker, uint32_t threads) : adjacent_(vertices) {
    const uint64_t edges = uint64_t{vertices} * degree / 2;
    std::vector<std::vector<Bucket>> lists(kParts, std::vector<Bucket>(kParts));
    in_parallel(threads, [&](uint32_t part) { draw(lists[part], part, edges, kronecker); });
    in_parallel(threads, [&](uint32_t part) { collect(lists, part); });
  }

  uint32_t size() const { return static_cast<uint32_t>(adjacent_.size()); }
  const std::vector<Vertex>& adjacent(Vertex v) const { return adjacent_[v]; }
  bool has_edge(Vertex a, Vertex b) const { return std::binary_search(adjacent_[a].begin(), adjacent_[a].end(), b); }
  uint64_t entries() const {
    uint64_t sum = 0;
    for (const auto& list : adjacent_) sum += list.size();
    return sum;
  }

  // A random vertex that has neighbours, for a search to start from.
  Vertex source(Random& random) const {
    for (uint32_t tries = 0; tries < 1000000; ++tries) {
      const Vertex v = random.below(size());
      if (!adjacent_[v].empty()) return v;
    }
    require(false, "the graph has no edges");
    return 0;
  }

 private:
  struct Edge {
    Vertex from;
    Vertex to;
  };
  using Bucket = std::vector<Edge>;
  static constexpr uint32_t kParts = 64;  // of the edges, and of the vertices

  static void in_parallel(uint32_t threads, const std::function<void(uint32_t)>& work) {
    Shares parts(1);
    parts.reset(kParts);
    on_threads(threads, [&](uint32_t) { parts.each(work); });
  }

  uint32_t part_of(Vertex v) const { return static_cast<uint32_t>(uint64_t{v} * kParts / adjacent_.size()); }

  static Vertex kronecker_vertices(Random& random, uint32_t bits, Vertex& to) {
    Vertex from = 0;
    to = 0;
    for (uint32_t bit = 0; bit < bits; ++bit) {
      const uint32_t quarter = random.below(100);
      from = from << 1 | (quarter >= 76 ? 1 : 0);
      to = to << 1 | ((quarter >= 57 && quarter < 76) || quarter >= 95 ? 1 : 0);
    }
    // Numbered at random, as far as one factor does that: else the vertices with most edges would all be neighbours.
    const Vertex mask = (1u << bits) - 1;
    to = to * 0x9e3779b1u & mask;
    return from * 0x9e3779b1u & mask;
  }

  // One part of the edge list, each edge in both directions, sorted into buckets by where they start.
  void draw(std::vector<Bucket>& buckets, uint32_t part, uint64_t edges, bool kronecker) const {
    Random random(600 + part);
    uint32_t bits = 1;
    while ((1u << bits) < size()) ++bits;
    for (uint64_t i = edges * part / kParts; i < edges * (part + 1) / kParts; ++i) {
      Vertex from = random.below(size());
      Vertex to = random.below(size());
      if (kronecker) {
        from = kronecker_vertices(random, bits, to);
        from = static_cast<Vertex>(uint64_t{from} * size() >> bits);
        to = static_cast<Vertex>(uint64_t{to} * size() >> bits);
      }
      buckets[part_of(from)].push_back({from, to});
      buckets[part_of(to)].push_back({to, from});
    }
  }

  // The adjacency lists of one part of the vertices; frees the buckets that it has read.
  void collect(std::vector<std::vector<Bucket>>& lists, uint32_t part) {
    for (auto& buckets : lists) {
      for (const Edge& edge : buckets[part]) {
        if (edge.from != edge.to) adjacent_[edge.from].push_back(edge.to);
      }
      Bucket().swap(buckets[part]);
    }
    for (Vertex v = 0; v < size(); ++v) {
      if (part_of(v) != part) continue;
      auto& list = adjacent_[v];
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      list.shrink_to_fit();
    }
  }

  std::vector<std::vector<Vertex>> adjacent_;
};

// The vertices that a search reached last. Each thread adds to a queue of its own; between two steps the queues become
// the list that all threads share out.
class Frontier {
 public:
  explicit Frontier(uint32_t threads) : queues_(threads) {}
  void add(uint32_t thread, Vertex v) { queues_[thread].found.push_back(v); }

  // By one thread while the others wait: the next frontier is what was added.
  std::vector<Vertex> take() {
    std::vector<Vertex> all;
    for (Queue& queue : queues_) {
      all.insert(all.end(), queue.found.begin(), queue.found.end());
      std::deque<Vertex>().swap(queue.found);
    }
    return all;
  }

 private:
  struct alignas(64) Queue {
    std::deque<Vertex> found;
  };
  std::vector<Queue> queues_;
};

// The whole program of one that searches a graph from several vertices: `Searches` is made of the graph, the sources
// and the number of threads, and has run(thread) and checksum(). It marks each search as a region: the GAP suite times
// neither the graph's making nor the check of a result.
template <typename Searches>
void search_graph(Options& options, const char* name, const char* sources_option, uint32_t sources,
                  const char* sources_meaning) {
  const uint32_t threads = options.threads();
  const uint32_t vertices = options.count("--vertices", 65536, "vertices of the graph");
  const uint32_t degree = options.count("--degree", 100, "their average degree");
  const uint64_t count = options.work(sources_option, sources, sources_meaning);
  const uint32_t kronecker = options.count("--kronecker", 0, "1: a Kronecker graph, 0: uniformly random edges");
  options.done();
  Options::accept(vertices >= 1, "--vertices must be 1 or more");

  uint64_t ops = 0;
  uint64_t checksum = 0;
  const double seconds = seconds_with_building([&] {
    const Graph graph(vertices, degree, kronecker != 0, threads);
    Random random(27);
    std::vector<Vertex> from;
    for (uint64_t i = 0; i < count; ++i) from.push_back(graph.source(random));
    Searches searches(graph, from, threads);
    on_threads(threads, [&](uint32_t id) { searches.run(id); });
    ops = graph.entries() * (count + 1);
    checksum = searches.checksum();
  });
  report(name, ops, seconds, checksum);
}

}  // namespace workload
