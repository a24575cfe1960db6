// Breadth-first searches through a synthetic graph by several threads, level by level.
// Stands for: BFS of the GAP benchmark suite (Beamer, Asanovic, Patterson, 2015) on a graph of 64k vertices of average
// degree 100, as the SpeedMalloc paper runs it. Edge lists become 64k adjacency vectors that grow; each search has
// fresh arrays of parents and distances, and each thread a queue of its own for the next level, whose blocks come and
// go. Levels are made in either direction (Beamer 2012): from the frontier, or, when it is large, from what is
// unreached.

#include <memory>

#include "graph.h"

using workload::Frontier;
using workload::Graph;
using workload::Random;
using workload::Shares;
using workload::Vertex;

namespace {

constexpr uint32_t kRun = 64;          // vertices that a thread takes at a time
constexpr uint32_t kLarge = 20;        // a frontier of more than 1 / kLarge of all vertices is large
constexpr uint32_t kFullyChecked = 8;  // of so many searches, one has all its edges checked

// One search's result. The distance is kept plus one; 0 is unreached.
struct Tree {
  explicit Tree(uint32_t vertices) : reached(vertices), parent(vertices) {}
  std::vector<std::atomic<uint32_t>> reached;
  std::vector<Vertex> parent;
};

class Searches {
 public:
  Searches(const Graph& graph, const std::vector<Vertex>& sources, uint32_t threads)
      : graph_(graph), sources_(sources), shares_(kRun), next_(threads), barrier_(threads) {}

  // What each thread does; all of them go through it together.
  void run(uint32_t id) {
    for (size_t i = 0; i < sources_.size(); ++i) {
      alone(id, [&] { start(sources_[i]); });
      for (uint32_t level = 1; !frontier_.empty(); ++level) {
        if (upwards_) {
          shares_.each([&](Vertex v) { look_up(id, v, level); });
        } else {
          shares_.each([&](uint32_t at) { look_down(id, frontier_[at], level); });
        }
        alone(id, [&] { advance(next_.take()); });
      }
      alone(id, [&] {
        ANNEX_REGION_END();
        shares_.reset(graph_.size());
      });
      uint64_t sum = 0;
      shares_.each([&](Vertex v) { sum += checked(v, sources_[i], i % kFullyChecked == 0); });
      checksum_.fetch_add(sum, std::memory_order_relaxed);
    }
  }

  uint64_t checksum() const { return checksum_.load(); }

 private:
  // Waits for all threads, lets one of them work, and waits for that.
  template <typename Work>
  void alone(uint32_t id, Work&& work) {
    barrier_.arrive_and_wait();
    if (id == 0) work();
    barrier_.arrive_and_wait();
  }

  void start(Vertex source) {
    ANNEX_REGION_BEGIN();
    tree_ = std::make_unique<Tree>(graph_.size());
    tree_->reached[source].store(1, std::memory_order_relaxed);
    tree_->parent[source] = source;
    advance({source});
  }

  void advance(std::vector<Vertex> frontier) {
    frontier_ = std::move(frontier);
    upwards_ = frontier_.size() > graph_.size() / kLarge;
    shares_.reset(upwards_ ? graph_.size() : static_cast<uint32_t>(frontier_.size()));
  }

  // Adds what is next to u and not yet reached.
  void look_down(uint32_t id, Vertex u, uint32_t level) {
    for (const Vertex v : graph_.adjacent(u)) {
      uint32_t unreached = 0;
      if (tree_->reached[v].load(std::memory_order_relaxed) != 0 ||
          !tree_->reached[v].compare_exchange_strong(unreached, level + 1, std::memory_order_relaxed)) {
        continue;
      }
      tree_->parent[v] = u;
      next_.add(id, v);
    }
  }

  // Adds v, if it is not yet reached and next to the frontier.
  void look_up(uint32_t id, Vertex v, uint32_t level) {
    if (tree_->reached[v].load(std::memory_order_relaxed) != 0) return;
    for (const Vertex u : graph_.adjacent(v)) {
      if (tree_->reached[u].load(std::memory_order_relaxed) != level) continue;
      tree_->reached[v].store(level + 1, std::memory_order_relaxed);
      tree_->parent[v] = u;
      next_.add(id, v);
      return;
    }
  }

  // A parent is a neighbour, one step nearer; no two neighbours are more than one step apart.
  uint64_t checked(Vertex v, Vertex source, bool fully) const {
    const uint32_t mine = tree_->reached[v].load(std::memory_order_relaxed);
    if (mine != 0) {
      const Vertex parent = tree_->parent[v];
      const bool good = v == source ? mine == 1
                                    : graph_.has_edge(v, parent) &&
                                          tree_->reached[parent].load(std::memory_order_relaxed) == mine - 1;
      workload::require(good, "a vertex has a wrong parent");
    }
    if (fully) {
      for (const Vertex u : graph_.adjacent(v)) {
        const uint32_t other = tree_->reached[u].load(std::memory_order_relaxed);
        workload::require((mine == 0) == (other == 0) && other + 1 >= mine && mine + 1 >= other,
                          "neighbours are too far apart");
      }
    }
    return workload::mix(uint64_t{v} << 32 | mine);
  }

  const Graph& graph_;
  const std::vector<Vertex>& sources_;
  std::unique_ptr<Tree> tree_;
  std::vector<Vertex> frontier_;
  bool upwards_ = false;
  Shares shares_;
  Frontier next_;
  std::barrier<> barrier_;
  std::atomic<uint64_t> checksum_{0};
};

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Breadth-first searches through a synthetic graph (BFS of GAP).");
  workload::search_graph<Searches>(options, "gap-bfs", "--searches", 128, "searches, each from another vertex");
}
