// Perfect binary trees, built bottom-up, walked and torn down, beside one long-lived tree.
// Stands for: binary-trees of the Computer Language Benchmarks Game, after GCBench (Ellis, Kovac, Boehm): the classic
// test of allocating and freeing very many nodes of one size.

#include "workload.h"

namespace {

struct Node {
  Node* left;
  Node* right;
};

Node* build(uint32_t depth) {
  auto* node = new Node{nullptr, nullptr};
  if (depth > 0) {
    node->left = build(depth - 1);
    node->right = build(depth - 1);
  }
  return node;
}

uint64_t count(const Node* node) { return node == nullptr ? 0 : 1 + count(node->left) + count(node->right); }

void destroy(Node* node) {
  if (node == nullptr) return;
  destroy(node->left);
  destroy(node->right);
  delete node;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Binary trees built and torn down.", workload::Chance::kNone);
  options.one_thread();
  const uint32_t depth = options.count("--depth", 17, "depth of the deepest trees");
  const uint64_t nodes = options.work("--nodes", 15000000, "nodes to build at each depth");
  options.done();

  uint64_t ops = 0;
  const double seconds = workload::seconds_with_building([&] {
    Node* long_lived = build(depth);
    for (uint32_t d = 4; d <= depth; d += 4) {
      const workload::Region region;
      const uint64_t per_tree = (uint64_t{2} << d) - 1;
      for (uint64_t built = 0; built < nodes; built += per_tree) {
        Node* tree = build(d);
        const uint64_t counted = count(tree);
        workload::require(counted == per_tree, "a tree has the wrong number of nodes");
        ops += counted;
        destroy(tree);
      }
    }
    const uint64_t counted = count(long_lived);
    workload::require(counted == (uint64_t{2} << depth) - 1, "the long-lived tree has the wrong number of nodes");
    ops += counted;
    destroy(long_lived);
  });
  workload::report("bintree", ops, seconds, ops);
}
