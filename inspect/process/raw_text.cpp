// Raw files' text: see raw_text.h.
#include "process/raw_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "process/pagemap.h"
#include "process/proc.h"
#include "process/profile_copy.h"
#include "process/snapshot.h"

namespace annex::inspect {

namespace {

// Lines, one after the other.
class Text {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string escaped(const std::string& plain, bool spaces) {
  std::string text;
  for (const char c : plain) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else if (c == ' ' && spaces)
      text += "\\s";
    else
      text += c;
  }
  return text;
}

// `dropped`: samples.
void add_heap(Text& text, const Snapshot& heap, uint64_t dropped) {
  const std::pair<const char*, uint64_t> numbers[] = {
      {"reserved", heap.committed},
      {"committed", heap.committed},
      {"metadata", heap.metadata},
      {"used", heap.used},
      {"used_spans", heap.used_spans},
      {"slabs", heap.slabs},
      {"dirty", heap.dirty},
      {"peak_in_use", heap.peak_in_use},
      {"purged_total", heap.purged_total},
      {"huge_page_bytes", heap.huge_page_bytes},
      {"heaps", heap.heap_count},
      {"arenas", heap.arenas},
      {"slab_refills", heap.slab_refills},
      {"remote_batches", heap.remote_batches},
      {"support_cpu_us", heap.support_cpu_us},
      {"resident", heap.resident},
      {"peak_resident", heap.peak_resident},
  };
  for (const auto& [name, value] : numbers) text.add("stat {} {}\n", name, value);
  text.add("stat dropped {}\n", dropped);
  for (annex::SizeClass c = 0; c < kClasses; ++c) {
    const ClassCounts& counts = heap.classes[c];
    if (counts.slabs == 0) continue;
    text.add("class {} {} {} {} {}\n", block_size(c), counts.slabs, counts.bytes, counts.made, counts.used);
  }
}

void add_sites(Text& text, const ProfileCopy& profile) {
  for (const ModuleCopy& module : profile.modules) {
    text.add("module {} {:x} {:x} {:x} {} {}\n", module.number, module.start, module.end, module.offset,
             module.build_id.empty() ? "-" : module.build_id, escaped(module.path, false));
  }
  for (const LabelCopy& label : profile.labels) {
    text.add("label {} {} {}\n", label.set, escaped(label.key, true), escaped(label.value, true));
  }
  for (const SiteCopy& site : profile.sites) {
    text.add("site {} {} {} {:.3f} {} {:.3f}", site.number, site.labels, site.samples, site.objects,
             static_cast<uint64_t>(site.bytes), site.freed);
    for (const double count : site.lifetimes) text.add(" {:.3f}", count);
    for (const FrameCopy& frame : site.frames) text.add(" {}:{:x}", frame.module, frame.return_address);
    text.add("\n");
  }
}

void add_live(Text& text, const ProfileCopy& profile, const Pagemap& pages) {
  for (const LiveCopy& live : profile.live) {
    text.add("live {} {:x} {} {} {:.3f} {} {} {} {}\n", live.site, live.block, live.asked, live.size, live.weight,
             live.age_ms, live.thread, pages.resident(live.block, live.size),
             live.is_span ? "-" : fmt::format("{}", fmt::join(live.shares, ",")));
  }
}

}  // namespace

std::string raw_text(const Target& target) {
  const Snapshot heap = take_snapshot(target);
  const ProfileCopy profile = copy_profile(target);
  Text text;
  text.add("annex-profile 1\npid {}\nprogram {}\nversion {}\nbegan {}\nwritten {}\nrate {}\npage {}\n", heap.process,
           escaped(program_path(heap.process), false), heap.version, profile.began_unix_ms, heap.unix_ms, profile.rate,
           sysconf(_SC_PAGESIZE));
  add_heap(text, heap, profile.dropped);
  add_sites(text, profile);
  add_live(text, profile, Pagemap(target.memory.process()));
  text.add("end\n");
  return text.take();
}

}  // namespace annex::inspect
