// Betweenness centrality of a synthetic graph's vertices by several threads: how many shortest paths lead through each.
// Stands for: BC of the GAP benchmark suite (Beamer, Asanovic, Patterson, 2015) on a graph of 64k vertices of average
// degree 100, as the SpeedMalloc paper runs it. The method is Brandes' (2001), from a few sources: forward level by
// level, counting paths, then backward, adding up dependencies. Each source has fresh arrays and queues, and for every
// vertex a vector of its successors that one thread lets grow and perhaps another frees.

#include <memory>

#include "graph.h"

using workload::Frontier;
using workload::Graph;
using workload::Random;
using workload::Shares;
using workload::Vertex;

namespace {

constexpr uint32_t kRun = 64;  // vertices that a thread takes at a time

// What is known from one source. The distance is kept plus one; 0 is unreached.
struct Paths {
  explicit Paths(uint32_t vertices) : reached(vertices), count(vertices), dependency(vertices), successors(vertices) {}
  std::vector<std::atomic<uint32_t>> reached;
  std::vector<double> count;       // of shortest paths from the source
  std::vector<double> dependency;  // share of all shortest paths from the source that goes on from here
  std::vector<std::vector<Vertex>> successors;
  std::vector<std::vector<Vertex>> levels;
};

class Centrality {
 public:
  Centrality(const Graph& graph, const std::vector<Vertex>& sources, uint32_t threads)
      : graph_(graph), sources_(sources), scores_(graph.size()), shares_(kRun), next_(threads), barrier_(threads) {}

  // What each thread does; all of them go through it together.
  void run(uint32_t id) {
    for (const Vertex source : sources_) {
      alone(id, [&] { start(source); });
      for (uint32_t level = 1; !paths_->levels.back().empty(); ++level) {
        over(paths_->levels.back(), [&](Vertex u) { reach(id, u, level); });
        alone(id, [&] { advance(next_.take()); });
        over(paths_->levels.back(), [&](Vertex v) { count_paths(v, level); });
        alone(id, [&] { share(paths_->levels[level - 1]); });
        over(paths_->levels[level - 1], [&](Vertex u) { find_successors(u, level); });
        alone(id, [&] { share(paths_->levels.back()); });
      }
      for (size_t level = paths_->levels.size() - 1; level-- > 0;) {
        alone(id, [&] { share(paths_->levels[level]); });
        over(paths_->levels[level], [&](Vertex u) { depend(u, source); });
      }
      alone(id, [&] {
        ANNEX_REGION_END();
        check(source);
      });
    }
  }

  uint64_t checksum() const {
    uint64_t sum = 0;
    for (Vertex v = 0; v < graph_.size(); ++v)
      sum += workload::mix(uint64_t{v} << 32 ^ static_cast<uint64_t>(scores_[v]));
    return sum;
  }

 private:
  // Waits for all threads, lets one of them work, and waits for that.
  template <typename Work>
  void alone(uint32_t id, Work&& work) {
    barrier_.arrive_and_wait();
    if (id == 0) work();
    barrier_.arrive_and_wait();
  }

  template <typename Work>
  void over(const std::vector<Vertex>& level, Work&& work) {
    shares_.each([&](uint32_t at) { work(level[at]); });
  }

  void share(const std::vector<Vertex>& level) { shares_.reset(static_cast<uint32_t>(level.size())); }

  void start(Vertex source) {
    ANNEX_REGION_BEGIN();
    paths_ = std::make_unique<Paths>(graph_.size());
    paths_->reached[source].store(1, std::memory_order_relaxed);
    paths_->count[source] = 1;
    advance({source});
  }

  void advance(std::vector<Vertex> level) {
    paths_->levels.push_back(std::move(level));
    share(paths_->levels.back());
  }

  uint32_t reached(Vertex v) const { return paths_->reached[v].load(std::memory_order_relaxed); }

  // Adds what is next to u and not yet reached.
  void reach(uint32_t id, Vertex u, uint32_t level) {
    for (const Vertex v : graph_.adjacent(u)) {
      uint32_t unreached = 0;
      if (reached(v) == 0 &&
          paths_->reached[v].compare_exchange_strong(unreached, level + 1, std::memory_order_relaxed)) {
        next_.add(id, v);
      }
    }
  }

  // Paths are counted by those that they lead to, in the order of their neighbours: the same sum on any thread.
  void count_paths(Vertex v, uint32_t level) {
    double count = 0;
    for (const Vertex u : graph_.adjacent(v)) {
      if (reached(u) == level) count += paths_->count[u];
    }
    paths_->count[v] = count;
  }

  void find_successors(Vertex u, uint32_t level) {
    for (const Vertex v : graph_.adjacent(u)) {
      if (reached(v) == level + 1) paths_->successors[u].push_back(v);
    }
  }

  void depend(Vertex u, Vertex source) {
    double sum = 0;
    for (const Vertex v : paths_->successors[u])
      sum += paths_->count[u] / paths_->count[v] * (1 + paths_->dependency[v]);
    std::vector<Vertex>().swap(paths_->successors[u]);
    paths_->dependency[u] = sum;
    if (u != source) scores_[u] += sum;
  }

  // A shortest path of d steps has d - 1 vertices inside, so over all vertices but the source the dependencies add up
  // to the distances less one; and the source is on every path.
  void check(Vertex source) const {
    double inside = 0;
    double dependencies = 0;
    double others = 0;
    for (Vertex v = 0; v < graph_.size(); ++v) {
      if (v == source || reached(v) == 0) continue;
      inside += reached(v) - 2.0;
      dependencies += paths_->dependency[v];
      others += 1;
    }
    workload::require(std::fabs(dependencies - inside) <= 1e-9 * (inside + 1), "the dependencies do not add up");
    workload::require(std::fabs(paths_->dependency[source] - others) <= 1e-9 * others,
                      "the source is not on all paths");
  }

  const Graph& graph_;
  const std::vector<Vertex>& sources_;
  std::vector<double> scores_;
  std::unique_ptr<Paths> paths_;
  Shares shares_;
  Frontier next_;
  std::barrier<> barrier_;
};

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Betweenness centrality in a synthetic graph (BC of GAP).");
  workload::search_graph<Centrality>(options, "gap-bc", "--sources", 16, "vertices from which all paths are followed");
}
