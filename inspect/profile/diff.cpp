// What changed between two profiles: see diff.h.
#include "profile/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profile/text.h"

namespace annex::inspect {
namespace {

struct Change {
  std::string where;
  Values before{}, after{};

  double grown(Value value) const { return after[value] - before[value]; }
};

std::string signed_text(const std::string& text, double number) { return number > 0 ? "+" + text : text; }

std::string key_of(const Profile& profile, const Site& site) {
  std::string key;
  for (const CodeLine* line : profile.lines_of(site)) key += line->function + '\n' + line->file + '\n';
  for (const auto& [name, value] : site.labels) key += name + '\0' + value + '\0';
  return key;
}

void add(const Profile& profile, Values Change::*values, std::map<std::string, Change>* changes) {
  for (const Site& site : profile.sites) {
    Change& change = (*changes)[key_of(profile, site)];
    if (change.where.empty()) change.where = short_stack(profile, site) + labels_text(site.labels);
    for (size_t value = 0; value < kValueCount; ++value) (change.*values)[value] += site.values[value];
  }
}

std::string table_of(const std::vector<Change>& changes) {
  Columns table({"live bytes", "before", "after", "blocks", "where"});
  for (const Change& change : changes) {
    const double bytes = change.grown(kLiveBytes), blocks = change.grown(kLiveBlocks);
    table.add({signed_text(bytes_text(bytes), bytes), bytes_text(change.before[kLiveBytes]),
               bytes_text(change.after[kLiveBytes]), signed_text(count_text(blocks), blocks), change.where});
  }
  return table.text();
}

}  // namespace

std::string diff_text(const Profile& before, const Profile& after, size_t most) {
  std::map<std::string, Change> by_stack;
  add(before, &Change::before, &by_stack);
  add(after, &Change::after, &by_stack);
  std::vector<Change> grown, shrunk;
  for (auto& [key, change] : by_stack) {
    const double bytes = change.grown(kLiveBytes);
    if (std::abs(bytes) >= 0.5) (bytes > 0 ? grown : shrunk).push_back(std::move(change));
  }
  const auto more = [](const Change& a, const Change& b) {
    return std::abs(a.grown(kLiveBytes)) > std::abs(b.grown(kLiveBytes));
  };
  const double all = after.sums[kLiveBytes] - before.sums[kLiveBytes];
  std::string text = fmt::format("live {}, from {} to {}\n", signed_text(bytes_text(all), all),
                                 bytes_text(before.sums[kLiveBytes]), bytes_text(after.sums[kLiveBytes]));
  for (auto* changes : {&grown, &shrunk}) {
    if (changes->empty()) continue;
    std::stable_sort(changes->begin(), changes->end(), more);
    const size_t count = changes->size();
    changes->resize(std::min(count, most));
    text += fmt::format("\n{} ({} of {})\n{}", changes == &grown ? "grew" : "shrank", changes->size(), count,
                        table_of(*changes));
  }
  return text;
}

}  // namespace annex::inspect
