// A heap profile's raw file: see profile_file.h.
#include "observe/profile_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "front/front.h"
#include "observe/report.h"
#include "os/clock.h"
#include "os/message.h"
#include "os/options.h"
#include "os/small_file.h"
#include "os/system_call.h"
#include "pages/arena.h"
#include "pages/locked.h"
#include "pages/page_heap.h"
#include "profile/samples.h"
#include "profile/tables.h"

#pragma weak strerrordesc_np  // glibc's since 2.32

namespace annex::observe {

namespace {

using profile::tables;

constinit pid_t began_in = 0;  // the process

// Text on its way to a descriptor.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  Output& operator<<(const char* text) {
    for (; *text != '\0'; ++text) put(*text);
    return *this;
  }
  Output& operator<<(uint64_t number) {
    return rendered([=](os::Text& text) { text << number; });
  }
  Output& hex(uint64_t number) {
    return rendered([=](os::Text& text) { text.hex_digits(number); });
  }
  // With three decimals.
  Output& decimal(double number) {
    const uint64_t thousandths = static_cast<uint64_t>(number * 1000 + 0.5);
    *this << thousandths / 1000 << ".";
    for (uint64_t unit = 100; unit > 0; unit /= 10) put(static_cast<char>('0' + thousandths / unit % 10));
    return *this;
  }
  // Where spaces would end it, they are escaped as well.
  Output& escaped(const char* text, bool spaces) {
    for (; *text != '\0'; ++text) {
      if (*text == '\\') {
        *this << "\\\\";
      } else if (*text == '\n') {
        *this << "\\n";
      } else if (spaces && *text == ' ') {
        *this << "\\s";
      } else {
        put(*text);
      }
    }
    return *this;
  }
  // Nothing is written until so many bytes more have come.
  void make_room(size_t bytes) {
    if (sizeof buffer_ - stored_ < bytes) flush();
  }
  // False where something could not be written.
  bool flush() {
    if (error_ == 0) error_ = os::write_all(descriptor_, buffer_, stored_);
    stored_ = 0;
    if (error_ != 0) errno = error_;
    return error_ == 0;
  }

 private:
  template <class Render>
  Output& rendered(Render render) {
    char buffer[24];
    os::Text text(buffer, sizeof buffer);
    render(text);
    for (size_t i = 0; i < text.stored(); ++i) put(buffer[i]);
    return *this;
  }
  void put(char c) {
    if (stored_ == sizeof buffer_) flush();
    buffer_[stored_++] = c;
  }

  int descriptor_;
  int error_ = 0;
  size_t stored_ = 0;
  char buffer_[4096];
};

// A line "VmRSS:     1234 kB" of /proc/self/status, in bytes; 0 where there is none.
uint64_t status_bytes(const char* status, const char* name) {
  const char* line = os::find_in(status, name);
  if (line == nullptr) return 0;
  for (line += os::length_of(name); *line == ' ' || *line == '\t' || *line == ':';) ++line;
  uint64_t number = 0;
  for (; *line >= '0' && *line <= '9'; ++line) number = number * 10 + static_cast<uint64_t>(*line - '0');
  return number * 1024;
}

// The path of the program's file.
void write_program(Output& out) {
  char path[4096];
  const long length = os::system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/exe"),
                                      reinterpret_cast<long>(path), sizeof path - 1);
  path[std::max(length, 0L)] = '\0';
  out.escaped(path, false);
}

void write_head(Output& out) {
  out << "annex-profile 1\npid " << static_cast<uint64_t>(getpid()) << "\nprogram ";
  write_program(out);
  out << "\nversion " << annex_version() << "\nbegan " << tables.began_unix_ms << "\nwritten " << os::unix_ms()
      << "\nrate " << tables.last_rate << "\npage " << os::page_size() << "\n";
}

void write_stats(Output& out) {
  for_each_field(gather(), &out, [](const char* name, uint64_t value, void* to) {
    *static_cast<Output*>(to) << "stat " << name << " " << value << "\n";
  });
  char status[4096];
  os::read_file("/proc/self/status", status);
  out << "stat resident " << status_bytes(status, "VmRSS") << "\n";
  out << "stat peak_resident " << status_bytes(status, "VmHWM") << "\n";
  out << "stat dropped " << tables.dropped << "\n";
}

struct OfClass {
  uint64_t slabs, made, used;
};

// Counts that their slabs' owners may be changing: a moment's.
[[gnu::no_sanitize_thread]] void count_slab(const Slab* slab, OfClass* classes) {
  OfClass& of = classes[slab->size_class];
  ++of.slabs;
  of.made += slab->carved;
  of.used += std::min<uint32_t>(static_cast<uint16_t>(slab->used_after + slab->countdown), slab->carved);
}

void write_classes(Output& out) {
  OfClass classes[kClasses] = {};
  {
    const Locked lock;
    PageHeap::walk(lock, [&](const Granule* head) {
      if (head->kind == Kind::kSlab) count_slab(static_cast<const Slab*>(head), classes);
      return 0;
    });
  }
  for (SizeClass c = 0; c < kClasses; ++c) {
    const auto& [slabs, made, used] = classes[c];
    if (slabs == 0) continue;
    out << "class " << block_size(c) << " " << slabs << " " << slabs * slab_granules(c) * kGranule << " " << made << " "
        << used << "\n";
  }
}

void write_module(Output& out, const profile::Module* module) {
  out << "module " << uint64_t{module->number} << " ";
  out.hex(module->start) << " ";
  out.hex(module->end) << " ";
  out.hex(module->offset) << " ";
  if (module->build_id_bytes == 0) out << "-";
  for (uint32_t i = 0; i < module->build_id_bytes; ++i) out.hex(module->build_id[i] >> 4).hex(module->build_id[i] & 15);
  out << " ";
  if (is_program(module)) {
    write_program(out);
  } else {
    out.escaped(module->path, false);
  }
  out << "\n";
}

// The program's own first: other tools take the first one for that.
void write_modules(Output& out) {
  for (const bool of_program : {true, false}) {
    for (const profile::Module* module = __atomic_load_n(&tables.modules, __ATOMIC_ACQUIRE); module != nullptr;
         module = module->next) {
      if (is_program(module) == of_program) write_module(out, module);
    }
  }
}

void write_labels(Output& out) {
  for (const profile::Label* label = tables.labels; label != nullptr; label = label->next) {
    out << "label " << uint64_t{label->set} << " ";
    out.escaped(label->key, true) << " ";
    out.escaped(label->value, true) << "\n";
  }
}

void write_site(Output& out, const profile::Site* site) {
  out << "site " << uint64_t{site->number} << " " << uint64_t{site->labels} << " " << site->samples << " ";
  out.decimal(site->objects) << " " << static_cast<uint64_t>(site->bytes) << " ";
  out.decimal(site->freed);
  for (const double lifetime : site->lifetimes) {
    out << " ";
    out.decimal(lifetime);
  }
  for (uint32_t i = 0; i < site->depth; ++i) {
    out << " " << uint64_t{site->modules()[i]} << ":";
    out.hex(site->frames[i]);
  }
  out << "\n";
}

// Each with the lock held, as its counts belong together; other threads come in between.
constexpr size_t kLongestLine = 2048;
void write_sites(Output& out, const profile::Site* first) {
  for (const profile::Site* site = first; site != nullptr; site = site->next) {
    out.make_room(kLongestLine);
    const os::Guard guard(profile::lock);
    write_site(out, site);
  }
}

// How much of a range is resident.
uint64_t resident_in(const char* start, size_t bytes) {
  constexpr size_t kAtOnce = 4096;  // pages
  unsigned char pages[kAtOnce];
  uint64_t resident = 0;
  const size_t page = os::page_size();
  for (size_t done = 0; done < bytes; done += kAtOnce * page) {
    const size_t piece = std::min(bytes - done, kAtOnce * page);
    if (os::system_call(SYS_mincore, reinterpret_cast<long>(start + done), static_cast<long>(piece),
                        reinterpret_cast<long>(pages)) != 0)
      return bytes;
    for (size_t i = 0; i < (piece + page - 1) / page; ++i) resident += pages[i] & 1 ? page : 0;
  }
  return std::min<uint64_t>(resident, bytes);
}

// For each page on which a block of a slab lies, how many blocks in use do.
void write_shares(Output& out, const Slab* slab, const char* block, size_t size) {
  const size_t page = os::page_size();
  const char* const start = start_of(slab);
  const size_t offset = static_cast<size_t>(block - start);
  const uint32_t carved = __atomic_load_n(&slab->carved, __ATOMIC_RELAXED);
  for (size_t at = round_down(offset, page); at < offset + size; at += page) {
    const uint32_t first = static_cast<uint32_t>(at / size);
    const uint32_t end = std::min(static_cast<uint32_t>((at + page - 1) / size + 1), carved);
    uint64_t in_use = 0;
    for (uint32_t i = first; i < end; ++i) in_use += Front::is_free_block(slab, start + i * size) ? 0 : 1;
    if (at > offset) out << ",";
    out << std::max<uint64_t>(in_use, 1);
  }
}

void write_sample(Output& out, const profile::Sample& sample) {
  const char* const block = reinterpret_cast<const char*>(sample.block);
  const bool in_slab = sample.head->kind == Kind::kSlab;
  out << "live " << uint64_t{sample.site->number} << " ";
  out.hex(sample.block) << " " << sample.asked << " " << sample.size << " ";
  out.decimal(sample.weight) << " " << os::now_ms() - sample.born_ms << " " << uint64_t{sample.thread} << " "
                             << (in_slab ? sample.size : resident_in(block, sample.size)) << " ";
  if (in_slab) {
    write_shares(out, static_cast<const Slab*>(sample.head), block, sample.size);
  } else {
    out << "-";
  }
  out << "\n";
}

// Each with the lock held, as its block may not be freed for good meanwhile; other threads come in between.
void write_samples(Output& out, const profile::Site* first) {
  for (uint32_t index = 1;; ++index) {
    out.make_room(kLongestLine);
    const os::Guard guard(profile::lock);
    if (index >= tables.places) return;
    const profile::Sample& sample = profile::sample_at(index);
    if (sample.block != 0 && sample.site->number <= first->number) write_sample(out, sample);
  }
}

}  // namespace

bool start_profile(uint64_t rate) {
  if (tables.began_unix_ms == 0) began_in = getpid();
  return Front::start_profile(rate);
}

bool write_profile(int descriptor) {
  profile::end_freed();
  Output out(descriptor);
  write_head(out);
  write_stats(out);
  write_classes(out);
  // Those that there are now: their modules and labels are written down, and samples of later ones are left out.
  const profile::Site* const sites = __atomic_load_n(&tables.sites, __ATOMIC_ACQUIRE);
  write_modules(out);
  write_labels(out);
  write_sites(out, sites);
  if (sites != nullptr) write_samples(out, sites);
  out << "end\n";
  return out.flush();
}

bool write_profile_to(const char* pattern, bool apart) {
  char path[4096];
  os::Text text(path, sizeof path - 1);
  const bool named = os::add_path(text, pattern);
  if (apart && !named && began_in != getpid()) text << "." << static_cast<uint64_t>(getpid());
  path[text.stored()] = '\0';
  // Not by libc's open and close, where a thread that ends the process may be cancelled.
  const long file = os::system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path),
                                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) errno = static_cast<int>(-file);
  const bool written = file >= 0 && write_profile(static_cast<int>(file));
  if (!written) {
    if (strerrordesc_np != nullptr) text << ": " << strerrordesc_np(errno);
    path[text.stored()] = '\0';
    os::warn("can't write the profile to ", path);
  }
  if (file >= 0) os::system_call(SYS_close, file);
  return written;
}

}  // namespace annex::observe
