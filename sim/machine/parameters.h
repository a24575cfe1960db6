// A machine is data: every parameter of every unit, with its unit of measure, bounds and meaning, in one place. Read
// from TOML, checked, and written back as JSON and as documentation by one visitor for each group.
//
// A group's each(self, visit) calls visit(name, member, least, most, unit, meaning, source) for each parameter; for a
// choice among names, visit(name, member, choices, meaning, source). The source is that of the default: a paper's
// section, a manual, another simulator's default, or "assumed" where there is none.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "machine/types.h"
#include "machine/uop.h"

namespace annex::sim {

using Choices = std::initializer_list<std::string_view>;

struct CacheParameters {
  uint64_t bytes = 0;
  uint32_t ways = 8;
  uint32_t allocator_ways = 0;
  uint32_t latency = 4;
  uint32_t mshrs = 16;
  std::string prefetcher = "none";
  uint32_t prefetch_degree = 2;
  uint32_t prefetch_streams = 64;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("bytes", self.bytes, 0, uint64_t{1} << 40, "bytes",
          "capacity; ways x 64 bytes x a power of two of sets; of an l2, 0: the core has none", "SpeedMalloc Table 2");
    visit("ways", self.ways, 1, 64, "ways", "associativity; replacement is least recently used", "SpeedMalloc Table 2");
    visit("allocator_ways", self.allocator_ways, 0, 63, "ways",
          "of these, that only the allocator's code fills, and it fills no others; 0: all fill all",
          "SpeedMalloc 6.4.1 and Figure 15");
    visit("latency", self.latency, 1, 1000, "cycles", "of a look-up here; added to that of the levels before it",
          "SpeedMalloc Table 2");
    visit("mshrs", self.mshrs, 1, 256, "lines", "misses outstanding at once",
          "assumed; l1d's as Haswell's fill buffers (Intel 64 optimization manual)");
    visit("prefetcher", self.prefetcher, Choices{"none", "next-line", "stride"},
          "what is fetched ahead on a demand access", "gem5's caches have none by default");
    visit("prefetch_degree", self.prefetch_degree, 1, 16, "lines", "that the stride prefetcher runs ahead", "assumed");
    visit("prefetch_streams", self.prefetch_streams, 1, 4096, "pages", "whose strides it knows at a time", "assumed");
  }
};

struct TlbParameters {
  uint32_t entries = 64;
  uint32_t ways = 4;
  uint32_t latency = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("entries", self.entries, 1, 1 << 20, "pages", "capacity, for pages of either size; ways x a power of two",
          "Intel 64 optimization manual: Haswell's first level, Skylake's second");
    visit("ways", self.ways, 1, 1 << 20, "ways", "associativity",
          "Intel 64 optimization manual: Haswell's first level, Skylake's second");
    visit("latency", self.latency, 0, 1000, "cycles", "of a look-up here after a miss before it; 0: hidden", "assumed");
  }
};

// Walks of the page table: page_walker.h.
struct WalkerParameters {
  std::string reads = "nothing";
  uint32_t walkers = 2;
  uint32_t entries = 16;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("reads", self.reads, Choices{"nothing", "tables", "nested tables"},
          "what a walk reads: nothing, and takes pages.walk; or entries of the page table, through the L1D; or these "
          "and a hypervisor's",
          "simplest; the others as in Intel's SDM 3A 4.5 and 3C 29.3");
    visit("walkers", self.walkers, 1, 64, "walks", "at a time, where they read",
          "Intel 64 optimization manual, Skylake; AMD's Zen 2 (WikiChip)");
    visit("entries", self.entries, 1, 1024, "entries",
          "of each cache of upper levels, for 2 MiB, 1 GiB and 512 GiB, where walks read",
          "AMD 52128, family 16h, 2.6.3: a page directory cache of 16");
  }
};

struct CoreParameters {
  std::string kind = "out-of-order";
  uint32_t decode = 4;
  uint32_t decode_queue = 56;
  uint32_t width = 4;
  uint32_t retire_width = 4;
  uint32_t rob = 192;
  uint32_t scheduler = 60;
  uint32_t load_queue = 72;
  uint32_t store_queue = 42;
  uint32_t front_end = 12;
  uint32_t taken = 1;
  uint32_t mispredict = 15;
  uint32_t forward = 5;
  std::string forwarding = "contained";
  std::string disambiguation = "predicted";
  std::string prefetches = "fetch";
  uint32_t atomic = 18;
  uint32_t fence = 20;
  uint32_t pause = 10;
  // By class, in the order of UopClass: cycles, cycles that the port stays busy, and the ports as bits.
  std::array<uint32_t, kUopClasses> latency = {1, 1, 1, 3, 26, 1, 0, 1, 1, 3, 5, 14, 30, 1, 1};
  std::array<uint32_t, kUopClasses> busy = {1, 1, 1, 1, 10, 1, 1, 1, 1, 1, 1, 8, 15, 1, 1};
  std::array<uint32_t, kUopClasses> ports = {0xff, 0x63, 0x41, 0x02, 0x01, 0x41, 0x0c, 0x10,
                                             0x23, 0x02, 0x03, 0x01, 0x21, 0xff, 0xff};

  // Of latency, busy and ports.
  static const char* source_of(UopClass kind);
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("kind", self.kind, Choices{"out-of-order", "in-order"}, "how instructions issue", "SpeedMalloc 6.1.1");
    visit("decode", self.decode, 1, 16, "micro-ops a cycle", "decoded, up to a taken branch",
          "Intel 64 optimization manual, Haswell");
    visit("decode_queue", self.decode_queue, 1, 1024, "micro-ops", "decoded, and waiting for dispatch",
          "Intel 64 optimization manual, Haswell");
    visit("width", self.width, 1, 16, "micro-ops a cycle", "dispatched", "Intel 64 optimization manual, Haswell");
    visit("retire_width", self.retire_width, 1, 16, "micro-ops a cycle", "retired",
          "Intel 64 optimization manual, Haswell");
    visit("rob", self.rob, 1, 1024, "micro-ops", "reorder buffer", "Intel 64 optimization manual, Haswell");
    visit("scheduler", self.scheduler, 1, 1024, "micro-ops", "waiting for their operands or a port",
          "Intel 64 optimization manual, Haswell");
    visit("load_queue", self.load_queue, 1, 1024, "loads", "between dispatch and retirement",
          "Intel 64 optimization manual, Haswell");
    visit("store_queue", self.store_queue, 1, 1024, "stores", "between dispatch and their write to L1",
          "Intel 64 optimization manual, Haswell");
    visit("front_end", self.front_end, 1, 100, "cycles", "from fetch to dispatch", "assumed");
    visit("taken", self.taken, 0, 100, "cycles", "from a taken branch's dispatch to what it leads to, at least",
          "Agner Fog's tables, Haswell: a taken jump every 1 to 2 cycles");
    visit("mispredict", self.mispredict, 0, 1000, "cycles", "from the branch's execution to the next dispatch",
          "Agner Fog's microarchitecture manual, Haswell: 15 to 20");
    visit("forward", self.forward, 0, 100, "cycles", "from a store's data to a load of the same bytes",
          "Agner Fog's tables, Haswell: store and load of the same address");
    visit("forwarding", self.forwarding, Choices{"contained", "any"},
          "what a queued store forwards: bytes that it has all of (other loads wait until it is written), or any",
          "Intel 64 optimization manual: store forwarding");
    visit("disambiguation", self.disambiguation, Choices{"perfect", "predicted"},
          "of loads and older stores of unknown address: wrong guesses cost as much as of branches",
          "Intel 64 optimization manual: memory disambiguation");
    visit("prefetches", self.prefetches, Choices{"fetch", "ignore"},
          "what software prefetches do: fetch their line, where its page is there, or nothing",
          "Intel 64 optimization manual: software prefetch");
    visit("atomic", self.atomic, 0, 1000, "cycles", "of a locked instruction whose line is the core's own, in L1",
          "Agner Fog's tables, Skylake");
    visit("fence", self.fence, 0, 1000, "cycles", "of a full fence, after all stores before it are written", "assumed");
    visit("pause", self.pause, 0, 10000, "cycles", "of a pause instruction",
          "Intel 64 optimization manual: about 10 before Skylake");
    for (size_t i = 0; i < kUopClasses; ++i) {
      const std::string unit = name_of(static_cast<UopClass>(i));
      const char* source = source_of(static_cast<UopClass>(i));
      visit("latency." + unit, self.latency[i], 0, 10000, "cycles",
            "from operands to result (of a load: beside the cache)", source);
      visit("busy." + unit, self.busy[i], 1, 10000, "cycles", "until the port takes the next", source);
      visit("ports." + unit, self.ports[i], 1, 0xffff, "bits", "the ports that take it, port 0 in bit 0", source);
    }
  }
};

struct PredictorParameters {
  std::string kind = "tage";
  uint32_t table_bits = 13;
  uint32_t history = 64;
  uint32_t btb = 4096;
  uint32_t return_stack = 16;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("kind", self.kind, Choices{"perfect", "bimodal", "gshare", "tage"}, "direction of conditional branches",
          "Mallacc's artifact");
    visit("table_bits", self.table_bits, 1, 24, "bits", "index of the base table (of a tagged one: 3 less)", "assumed");
    visit("history", self.history, 1, 128, "branches", "the longest history that is used", "assumed");
    visit("btb", self.btb, 1, 1 << 20, "targets", "of indirect jumps and calls, by address and history; a power of two",
          "gem5's default");
    visit("return_stack", self.return_stack, 1, 1024, "addresses", "of calls",
          "Agner Fog's microarchitecture manual, Haswell");
  }
};

struct DramParameters {
  uint32_t channels = 1;
  uint32_t ranks = 2;
  uint32_t banks = 16;
  uint32_t row_bytes = 8192;
  std::string rows = "open";
  double bus_mts = 2400;
  double tcas_ns = 14.16;
  double trcd_ns = 14.16;
  double trp_ns = 14.16;
  double tras_ns = 32;
  double controller_ns = 10;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("channels", self.channels, 1, 64, "channels", "a power of two", "assumed; SpeedMalloc gives none");
    visit("ranks", self.ranks, 1, 16, "ranks a channel", "a power of two", "SpeedMalloc Table 2");
    visit("banks", self.banks, 1, 64, "banks a rank", "a power of two", "DDR4 (JESD79-4), chips of 8 bits");
    visit("row_bytes", self.row_bytes, 64, 1 << 20, "bytes", "of a bank's open row; a power of two",
          "DDR4 (JESD79-4): 8 chips (SpeedMalloc Table 2) of 1 KiB");
    visit("rows", self.rows, Choices{"open", "closed"},
          "after a read: the row stays open, for the next to hit it, or is closed",
          "assumed; gem5's default is open, adaptively");
    visit("bus_mts", self.bus_mts, 100, 20000, "million transfers of 8 bytes a second", "of a channel",
          "SpeedMalloc Table 2");
    visit("tcas_ns", self.tcas_ns, 0, 1000, "ns", "column to data", "SpeedMalloc Table 2");
    visit("trcd_ns", self.trcd_ns, 0, 1000, "ns", "row to column", "SpeedMalloc Table 2");
    visit("trp_ns", self.trp_ns, 0, 1000, "ns", "precharge", "SpeedMalloc Table 2");
    visit("tras_ns", self.tras_ns, 0, 1000, "ns", "row to precharge, at least", "SpeedMalloc Table 2");
    visit("controller_ns", self.controller_ns, 0, 1000, "ns", "from the last-level cache to the bank and back",
          "gem5's MemCtrl, its front end");
  }
};

struct CoherenceParameters {
  uint32_t transfer = 20;
  uint32_t invalidate = 12;
  uint32_t further = 2;
  uint32_t retry = 0;
  std::string atomics = "near";
  uint32_t far = 6;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("transfer", self.transfer, 0, 10000, "cycles",
          "to fetch a line from another core's cache, beside the look-up in the last level: to the owner, its look-up, "
          "to the requester",
          "assumed; with llc.latency 22 ns at 2 GHz, where real cores take 21 to 50 (papers/notes.md)");
    visit("invalidate", self.invalidate, 0, 10000, "cycles",
          "until another copy of a line is gone, beside the look-up in the last level", "assumed");
    visit("further", self.further, 0, 1000, "cycles", "beside that, for each further copy", "assumed");
    visit("retry", self.retry, 0, 10000, "cycles",
          "after which a request comes again that found its line busy; 0: it waits in the directory", "assumed");
    visit("atomics", self.atomics, Choices{"near", "far"},
          "where locked instructions are done: at the core, or at the last level",
          "gem5's classic caches; far as Arm's LSE allows");
    visit("far", self.far, 0, 1000, "cycles", "of a far one, beside the look-up", "assumed");
  }
};

// How cores reach the last level: interconnect.h.
struct InterconnectParameters {
  std::string layout = "none";
  uint32_t hop = 2;
  uint32_t slice_cycles = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("layout", self.layout, Choices{"none", "ring", "mesh"},
          "in which the cores stand, a slice of the last level beside each; none: it is as far from all",
          "simplest; rings and meshes as in Intel's and Arm's servers");
    visit("hop", self.hop, 0, 1000, "cycles", "of a message from one core's place to the next",
          "gem5's Garnet: a router of 1 and a link of 1");
    visit("slice_cycles", self.slice_cycles, 0, 1000, "cycles",
          "from one request that a slice takes up to the next; 0: it takes any number at a time", "simplest");
  }
};

// What the kernel takes is measured by annex-lab kernel-costs; docs/simulator-kernel.md has its numbers beside these.
struct PageParameters {
  uint32_t walk = 30;
  double fault_us = 0.7;
  double file_fault_us = 0.55;
  double huge_fault_us = 2;
  std::string huge_pages = "madvise";
  std::string frames = "as virtual";
  std::string clearing = "allocate";
  uint32_t clear_line = 2;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("walk", self.walk, 0, 10000, "cycles", "of a page walk that reads nothing (walker.reads)", "assumed");
    visit("fault_us", self.fault_us, 0, 1e6, "us", "of the first touch of a page of 4 KiB, beside its clearing",
          "assumed: 1.2 measured on a virtual machine, whose page walks are longer");
    visit("file_fault_us", self.file_fault_us, 0, 1e6, "us", "of the first touch of a file's page that is in memory",
          "assumed: 0.8 of fault_us, as measured");
    visit("huge_fault_us", self.huge_fault_us, 0, 1e6, "us",
          "of the first touch of a page of 2 MiB, beside its clearing",
          "assumed: a page's fault, and a free page of 2 MiB");
    visit("huge_pages", self.huge_pages, Choices{"never", "madvise", "always"}, "where the kernel gives pages of 2 MiB",
          "Debian's kernel");
    visit("frames", self.frames, Choices{"as virtual", "scattered"},
          "where pages of 4 KiB lie in memory, by which the caches and the memory's banks are indexed; those of a page "
          "of "
          "2 MiB as well",
          "simplest; a kernel scatters them");
    visit("clearing", self.clearing, Choices{"none", "allocate", "fetch", "non-temporal"},
          "how the kernel clears anonymous pages: at no cost and past the caches; by stores of whole lines, which then "
          "are in the caches; by stores that fetch each line first; or by stores past the caches",
          "Linux's clear_page: rep stosb, or Arm's dc zva, which fetch nothing");
    visit("clear_line", self.clear_line, 1, 1000, "cycles", "from one line's clearing to the next, at least",
          "Intel 64 optimization manual: rep stosb, 32 bytes a cycle");
  }
};

struct SystemParameters {
  double call_us = 0.12;
  double clock_us = 0.02;
  double yield_us = 0.4;
  double sleep_us = 1;
  double futex_again_us = 0.22;
  double futex_wait_us = 0.45;
  double futex_wake_us = 0.15;
  double futex_woken_us = 0.45;
  double wake_us = 2;
  double switch_us = 0.7;
  double slice_us = 3000;
  double clone_us = 5.5;
  double exit_us = 8;
  double mmap_us = 1.1;
  double munmap_us = 1.45;
  double mremap_us = 3.1;
  double mprotect_us = 0.7;
  double brk_us = 0.65;
  double madvise_us = 0.35;
  double page_us = 0.15;
  double free_page_us = 0.09;
  std::string mmap_lock = "read-write";
  double shoot_down_us = 1.5;
  double shoot_down_core_us = 0.3;
  double interrupt_us = 0.5;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    static constexpr std::string_view kMeasured = "measured by kernel-costs: docs/simulator-kernel.md";
    visit("call_us", self.call_us, 0, 1e6, "us", "of a system call that none of the others is for", kMeasured);
    visit("clock_us", self.clock_us, 0, 1e6, "us", "of reading a clock, which needs no system call (vDSO)", kMeasured);
    visit("yield_us", self.yield_us, 0, 1e6, "us", "of sched_yield, beside a switch", kMeasured);
    visit("sleep_us", self.sleep_us, 0, 1e6, "us", "of going to sleep for a time",
          "assumed: futex_wait_us and a timer");
    visit("futex_again_us", self.futex_again_us, 0, 1e6, "us", "of a futex wait that finds the word changed",
          kMeasured);
    visit("futex_wait_us", self.futex_wait_us, 0, 1e6, "us", "of a futex wait until its core is free, beside a switch",
          kMeasured);
    visit("futex_wake_us", self.futex_wake_us, 0, 1e6, "us", "of a futex wake", kMeasured);
    visit("futex_woken_us", self.futex_woken_us, 0, 1e6, "us", "beside it, for each thread that it wakes",
          "as futex_wait_us: docs/simulator-kernel.md");
    visit("wake_us", self.wake_us, 0, 1e6, "us", "from a wake-up, or a clone, to the thread's first instruction",
          "an idle core leaves C1 in 2 us: Linux's drivers/idle/intel_idle.c, Haswell and Skylake");
    visit("switch_us", self.switch_us, 0, 1e6, "us", "of a switch to another thread", kMeasured);
    visit("slice_us", self.slice_us, 1, 1e6, "us", "a thread runs at most while another waits for its core",
          "Linux's base slice with 8 CPUs");
    visit("clone_us", self.clone_us, 0, 1e6, "us", "of starting a thread", kMeasured);
    visit("exit_us", self.exit_us, 0, 1e6, "us", "of a thread's end", kMeasured);
    visit("mmap_us", self.mmap_us, 0, 1e6, "us", "of mmap, beside pages that it gives back", kMeasured);
    visit("munmap_us", self.munmap_us, 0, 1e6, "us", "of munmap, the same", kMeasured);
    visit("mremap_us", self.mremap_us, 0, 1e6, "us", "of mremap, the same", kMeasured);
    visit("mprotect_us", self.mprotect_us, 0, 1e6, "us", "of mprotect", kMeasured);
    visit("brk_us", self.brk_us, 0, 1e6, "us", "of brk, beside pages that it gives back", kMeasured);
    visit("madvise_us", self.madvise_us, 0, 1e6, "us", "of madvise, the same", kMeasured);
    visit("page_us", self.page_us, 0, 1e6, "us", "beside these, for each resident page that is given back",
          "assumed: 0.23 measured on a virtual machine");
    visit("free_page_us", self.free_page_us, 0, 1e6, "us", "of MADV_FREE, for each resident page", kMeasured);
    visit("mmap_lock", self.mmap_lock, Choices{"none", "read-write", "per-vma"},
          "which of a process's calls and page faults exclude each other: mmap_lock.h",
          "Debian 12's Linux 6.1; per-vma since 6.4");
    visit("shoot_down_us", self.shoot_down_us, 0, 1e6, "us",
          "beside the call, where one other core runs a thread of the process",
          "assumed, so that 16 cores take the 6 us of LATR (ASPLOS 2018)");
    visit("shoot_down_core_us", self.shoot_down_core_us, 0, 1e6, "us", "for each further core",
          "assumed, so that 16 cores take the 6 us of LATR (ASPLOS 2018)");
    visit("interrupt_us", self.interrupt_us, 0, 1e6, "us", "that each of these cores loses",
          "assumed: 1,000 cycles at 2 GHz");
  }
};

// Cores that run the allocator's calls for the others: sim/hardware/support_core.h. What kind of cores they are is said
// beside these, as of any kind: [support_core.core], [support_core.l1d] and so on.
struct SupportCoreParameters {
  uint32_t cores = 0;
  std::string requests = "queues";
  uint32_t link = 8;
  uint32_t queue = 128;
  uint32_t register_buffer = 16;
  uint32_t registers = 8;
  std::string first = "mallocs";
  std::string publish = "locked";
  std::string flags = "none";
  uint32_t poll = 2;
  uint32_t far = 0;
  uint32_t near = 0;
  std::string reply = "when-known";
  std::string service = "run";
  std::string context = "parked";

  bool used() const { return cores > 0; }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cores", self.cores, 0, 64, "cores",
          "that run the allocator's calls, each for as many main cores; 0: the cores that make them do",
          "SpeedMalloc Table 2: 1; its 6.5: one a cluster");
    visit("requests", self.requests, Choices{"queues", "signals", "memory"},
          "how requests come: signals to hardware message queues, signals alone, or shared memory that is polled",
          "SpeedMalloc 5.2, 4.1, 6.4.2");
    visit("link", self.link, 0, 100000, "cycles", "of a signal between a main core and this one",
          "SpeedMalloc Table 2");
    visit("queue", self.queue, 1, 65536, "requests",
          "in hardware that allocate, and as many that free; in shared memory, that free, of a core",
          "SpeedMalloc Table 2");
    visit("first", self.first, Choices{"mallocs", "oldest"},
          "which of the hardware queues' requests is served first: calls that allocate, or the one that came first",
          "SpeedMalloc 5.2; the latter of no paper");
    visit("register_buffer", self.register_buffer, 0, 4096, "processes", "whose system registers are kept for signals",
          "SpeedMalloc 5.2; the number is assumed");
    visit("registers", self.registers, 0, 10000, "cycles", "that they take on the link where they are not kept",
          "assumed");
    visit("publish", self.publish, Choices{"locked", "store"},
          "how a main core says that its request is in shared memory", "SpeedMalloc 6.4.2: atomic instructions");
    visit("flags", self.flags, Choices{"none", "two"},
          "of a call that waits, in shared memory: none, but a number in each line; or two, which are cleared again",
          "assumed; two: NextGen-Malloc, Pseudo Code 1");
    visit("poll", self.poll, 0, 10000, "cycles", "to look at a place in shared memory that has not changed",
          "assumed: load, compare and branch at two a cycle");
    visit("far", self.far, 0, 10000, "cycles",
          "that what it asks of the last level and of other cores' caches takes more than a main core's", "assumed");
    visit("near", self.near, 0, 10000, "cycles", "that its reads of memory take less than a main core's",
          "NextGen-Malloc 3.2: a near-memory core; it gives no number");
    visit("reply", self.reply, Choices{"when-known", "at-end"},
          "when the end signal leaves: as the result is known, or when the call is done", "SpeedMalloc 4.1");
    visit("service", self.service, Choices{"run", "none"}, "what a call costs there: what it takes, or no time at all",
          "SpeedMalloc 4.1; none is a bound, of no paper");
    visit("context", self.context, Choices{"parked", "caller"},
          "whose thread-local data calls see: a thread's that is parked there, or that of who calls",
          "SpeedMalloc 5.1: one heap for all");
  }
};

// What the program does beside what is in it, for experiments: sim/guest/other_work.h.
struct ProgramParameters {
  uint32_t work = 0;
  std::string memory = "as-program";

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("work", self.work, 0, 1000000, "instructions",
          "that a thread runs after each of the allocator's calls, beside the program's own",
          "an experiment, of no paper");
    visit("memory", self.memory, Choices{"as-program", "none"},
          "what that work touches: the program's lines, as often and as far back as it does itself; or none",
          "an experiment, of no paper");
  }
};

// A unit that serves calls in a fixed time: sim/hardware/fixed_time.h.
struct FixedTimeParameters {
  uint32_t units = 0;
  uint32_t cycles = 16;

  bool used() const { return units > 0; }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("units", self.units, 0, 1, "units", "that serve all cores' calls; 0: the cores that make them do",
          "a bound, of no paper");
    visit("cycles", self.cycles, 1, 1000000, "cycles", "from a call to its result", "SpeedMalloc Table 2: two links");
  }
};

// Memento+: an object allocator at each core, and a transfer cache between them: sim/hardware/memento.h.
struct MementoParameters {
  uint32_t units = 0;
  uint32_t largest = 512;
  uint32_t objects = 16;
  uint32_t batch = 8;
  uint32_t hit = 4;
  uint32_t arena = 256;
  std::string page_allocator = "no";
  uint32_t page = 40;

  bool used() const { return units > 0; }
  uint32_t classes() const { return (largest + 7) / 8; }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("units", self.units, 0, 1, "units", "of an object allocator at each core; 0: none",
          "SpeedMalloc 6.1.3, which built it for comparison");
    visit("largest", self.largest, 8, 4096, "bytes", "of the largest block that it serves, in classes of 8 bytes",
          "Memento: 512, in 64 classes");
    visit("objects", self.objects, 1, 65536, "objects", "of each class that a core keeps", "SpeedMalloc 6.2.1");
    visit("batch", self.batch, 1, 65536, "objects",
          "that are fetched when there are none, or given away when there is no room; at most `objects`",
          "assumed: half of what a core keeps");
    visit("hit", self.hit, 0, 1000, "cycles", "of a look into what a core keeps",
          "SpeedMalloc 6.1.3: a single cache access, Table 2: 4; Memento's table: 2");
    visit("arena", self.arena, 1, 65536, "objects", "of an arena, whose header is a line",
          "inferred from the 3.4 KB of Memento's table of 64 headers: a bitmap of 256 and two pointers each");
    visit("page_allocator", self.page_allocator, Choices{"no", "yes"},
          "whether pages of its blocks come from hardware, without page faults", "Memento");
    visit("page", self.page, 0, 100000, "cycles", "that such a page takes, with the first block in it",
          "assumed: a look-up in each cache (SpeedMalloc Table 2), beyond which the pool is");
  }
};

// A malloc accelerator in each core: sim/hardware/mallacc.h.
struct MallaccParameters {
  uint32_t entries = 0;
  std::string keys = "indices";
  uint32_t lookup = 1;
  uint32_t index = 1;
  uint32_t list = 1;
  std::string size_class = "unit";
  std::string pop = "unit";
  std::string push = "unit";
  std::string sampling = "unit";
  std::string instructions = "charged";
  uint32_t sample_bytes = 0;
  uint32_t interrupt = 10000;

  bool leaves_out(const std::string& step) const { return step == "free"; }
  bool used() const {
    return entries > 0 || leaves_out(size_class) || leaves_out(pop) || leaves_out(push) || leaves_out(sampling);
  }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    const Choices who = {"software", "unit", "free"};
    visit("entries", self.entries, 0, 4096, "classes",
          "that a core's malloc cache has; 0: none, and what `unit` would do software does",
          "Mallacc 6.2: 16 are enough; its 6.1 has 32");
    visit("keys", self.keys, Choices{"sizes", "indices"},
          "of what the ranges are: of sizes, or of TCMalloc's indices of them", "Mallacc 4.1");
    visit("lookup", self.lookup, 0, 1000, "cycles", "of a look-up of a size", "Mallacc's artifact: 2 with the index");
    visit("index", self.index, 0, 1000, "cycles", "more, where the ranges are of indices",
          "Mallacc 4.1: an additional cycle");
    visit("list", self.list, 0, 1000, "cycles", "of mchdpop, mchdpush, and of mcnxtprefetch beside its read",
          "assumed");
    visit("size_class", self.size_class, who, "who computes size classes; `free`: nobody, it costs nothing",
          "Mallacc 4.1, 5: its limit study");
    visit("pop", self.pop, who, "who takes a block from its list, in the same way", "Mallacc 4.1, 5");
    visit("push", self.push, who, "who puts one back; the unit learns of it, and software's work is not less",
          "Mallacc 4.1, 5");
    visit("sampling", self.sampling, who, "who counts bytes for samples", "Mallacc 4.2, 5");
    visit("instructions", self.instructions, Choices{"charged", "none"},
          "what the unit's own instructions cost; none is a bound, with what they wait for", "of no paper");
    visit("sample_bytes", self.sample_bytes, 0, 1 << 30, "bytes",
          "from one sample to the next; 0: none are taken, as nobody asked for them", "Mallacc 4.2");
    visit("interrupt", self.interrupt, 0, 10000000, "cycles", "that a sample's interrupt takes",
          "Mallacc's artifact: about 10,000");
  }
};

// A core, with its own caches and translation buffers.
struct CoreKind {
  CoreParameters core;
  PredictorParameters predictor;
  CacheParameters l1i{.bytes = 32768, .ways = 8, .latency = 4, .mshrs = 4};
  CacheParameters l1d{.bytes = 32768, .ways = 8, .latency = 4, .mshrs = 10};
  CacheParameters l2{.bytes = 262144, .ways = 8, .latency = 12, .mshrs = 16};
  TlbParameters itlb{.entries = 128, .ways = 4, .latency = 0};
  TlbParameters dtlb{.entries = 64, .ways = 4, .latency = 0};
  TlbParameters stlb{.entries = 1536, .ways = 12, .latency = 7};
  WalkerParameters walker;

  bool has_l2() const { return l2.bytes != 0; }

  // Its groups: visit(name, group, what it is).
  template <class Self, class Visit>
  static void each_group(Self& self, Visit&& visit) {
    visit("core", self.core, "each main core");
    visit("predictor", self.predictor, "its branch predictor");
    visit("l1i", self.l1i, "instruction cache of a core");
    visit("l1d", self.l1d, "data cache of a core");
    visit("l2", self.l2, "second cache of a core, which contains both (inclusive)");
    visit("itlb", self.itlb, "instruction TLB of a core");
    visit("dtlb", self.dtlb, "data TLB of a core");
    visit("stlb", self.stlb, "second TLB of a core");
    visit("walker", self.walker, "what walks the page table for a core");
  }
};

// Cores of another kind beside the main ones, as `[[kind]]` in a machine's file; what that doesn't say is the main
// cores'.
struct OtherCores : CoreKind {
  std::string name;
  uint32_t cores = 1;
  std::string threads = "yes";

  bool run_threads() const { return threads == "yes"; }

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cores", self.cores, 1, kMaxCores, "cores", "of this kind", "one");
    visit("threads", self.threads, Choices{"yes", "no"}, "whether the program's threads run there",
          "else only hardware units do");
  }
};

// The name of the kind of cores that Machine::support_core is about.
inline constexpr std::string_view kSupportCore = "support_core";

// All of a machine. What it has as a CoreKind is its main cores'.
struct Machine : CoreKind {
  std::string name;
  std::string description;
  uint32_t cores = 1;
  double ghz = 2.0;
  uint32_t quantum = 500;

  CacheParameters llc{.bytes = 2097152, .ways = 16, .latency = 24, .mshrs = 64};
  CoherenceParameters coherence;
  InterconnectParameters interconnect;
  DramParameters dram;
  PageParameters pages;
  SystemParameters system;
  ProgramParameters program;
  SupportCoreParameters support_core;
  FixedTimeParameters fixed_time;
  MementoParameters memento;
  MallaccParameters mallacc;
  std::vector<OtherCores> others;  // those that run threads before those that don't

  // Cores are numbered: main ones, then the others in their order.
  uint32_t all_cores() const;
  uint32_t thread_cores() const;  // on which threads run: the first ones
  const CoreKind& kind_of(unsigned core) const;
  // The first of the kind of that name; all_cores() where there is none.
  uint32_t first_of(std::string_view kind) const;
  // Whether a unit beside the cores serves the allocator's calls.
  bool has_unit() const { return support_core.used() || fixed_time.used() || memento.used(); }

  Cycles from_ns(double ns) const { return static_cast<Cycles>(std::llround(ns * ghz)); }
  Cycles from_us(double us) const { return from_ns(us * 1000); }

  // The machine's own.
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cores", self.cores, 1, kMaxCores, "cores", "main cores", "SpeedMalloc Table 2: 1 to 16");
    visit("ghz", self.ghz, 0.1, 100, "GHz", "clock of the cores and caches", "assumed; SpeedMalloc gives none");
    visit("quantum", self.quantum, 1, 1000000, "cycles",
          "how far one core may run ahead of the slowest: shorter is truer and slower to simulate",
          "docs/simulator-validation.md");
  }
  // Its groups beside the main cores', and those too.
  template <class Self, class Visit>
  static void each_group(Self& self, Visit&& visit) {
    CoreKind::each_group(self, visit);
    visit("llc", self.llc, "last-level cache of all cores, which contains all others (inclusive)");
    visit("coherence", self.coherence, "MESI between the cores' caches, with a directory in the last level");
    visit("interconnect", self.interconnect, "between the cores and the last level");
    visit("dram", self.dram, "memory");
    visit("pages", self.pages, "page walks and faults");
    visit("system", self.system, "what the kernel takes");
    visit("program", self.program, "what the program does beside what is in it");
    visit("support_core", self.support_core, "a core that runs the allocator's calls for the others; and its kind");
    visit("fixed_time", self.fixed_time, "a unit that serves the allocator's calls in a fixed time");
    visit("memento", self.memento, "object allocators of Memento+ at the cores");
    visit("mallacc", self.mallacc, "an accelerator in each core, for steps that an allocator's source marks");
  }
};

// What is wrong with it, a line each; empty: nothing.
std::vector<std::string> problems_of(const Machine& machine);

}  // namespace annex::sim
