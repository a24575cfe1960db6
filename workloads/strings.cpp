// Text work: lines are made from words, split, sorted, counted in a map, joined and replaced.
// Stands for: parsers, log processors and text services, where short strings of uneven length come and go in bursts and
// vectors grow by doubling.

#include <algorithm>
#include <map>

#include "workload.h"

using workload::Random;

namespace {

std::string word(Random& random) {
  std::string text;
  const uint32_t length = 3 + random.below(random.below(40) + 1);
  for (uint32_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.below(26));
  return text;
}

std::string line(Random& random, const std::vector<std::string>& words) {
  std::string text;
  for (uint32_t i = random.between(4, 24); i > 0; --i) {
    text += words[random.below(static_cast<uint32_t>(words.size()))];
    text += ' ';
  }
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t space = text.find(' '); space != std::string::npos; space = text.find(' ', start)) {
    parts.push_back(text.substr(start, space - start));
    start = space + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += part + between;
  return text;
}

uint64_t hash_of(const std::string& text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// One document: makes its lines, counts its words, rewrites it, and returns a hash of the result.
uint64_t document(Random& random, const std::vector<std::string>& words, uint32_t lines) {
  std::vector<std::string> text;
  std::map<std::string, std::vector<uint32_t>> where;
  for (uint32_t i = 0; i < lines; ++i) {
    text.push_back(line(random, words));
    for (const std::string& part : split(text.back())) where[part].push_back(i);
  }
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& [name, places] : where) hash = hash_of(name, hash + places.size());
  std::sort(text.begin(), text.end());
  for (std::string& one : text) {
    std::vector<std::string> parts = split(one);
    std::reverse(parts.begin(), parts.end());
    one = join(parts, "_and_");
    hash = hash_of(one, hash);
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "String churn.");
  options.one_thread();
  const uint64_t documents = options.work("--documents", 110, "documents to process");
  const uint32_t lines = options.count("--lines", 2000, "lines in a document");
  options.done();

  Random random(7);
  std::vector<std::string> words;
  for (uint32_t i = 0; i < 5000; ++i) words.push_back(word(random));
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t i = 0; i < documents; ++i) checksum = checksum * 31 + document(random, words, lines);
  });
  workload::report("strings", documents * lines, seconds, checksum);
}
