// The tables of annex stats and annex top: a row for each size class, thread heap or call site.
#pragma once

#include <string>
#include <vector>

#include "process/snapshot.h"

namespace annex::inspect {

struct TableRow {
  std::string name;  // the block size, the thread, the site
  std::string text;
  uint64_t bytes;  // in use
  double growth;   // of that, bytes a second
};

struct Table {
  std::string header;
  std::vector<TableRow> rows;  // the largest first, when it is sorted
};

// From one snapshot to the one that is shown; none before: growth is not known.
struct Change {
  const Snapshot* before = nullptr;
  double seconds = 0;

  bool known() const { return before != nullptr && seconds > 0; }
  double rate(uint64_t then, uint64_t now) const;
  // For a table's last column: "+1.20 MiB/s", or "-".
  std::string text(double rate) const;
};

Table class_table(const Snapshot& snapshot, const Change& change);
Table thread_table(const Snapshot& snapshot, const Change& change);

// Sorts the rows.
Table sorted(Table table);

}  // namespace annex::inspect
