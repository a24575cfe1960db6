// The simulator as a plugin of QEMU's user mode: tells the simulation of the blocks that the program's threads run, of
// their memory accesses and of their system calls.
//
//   LD_PRELOAD=libannex-sim.so qemu-x86_64 -U LD_PRELOAD -plugin libannex-sim.so,machine=FILE,presets=DIR,out=FILE.json
//   PROGRAM
//
// Arguments: see Options. Exit status 2, after a line for each problem, where they or the machine are wrong;
// 125 where the simulator itself fails (guest/last_resort.h).
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/alone.h"
#include "decode/decoder.h"
#include "decode/markers.h"
#include "decode/prefetch.h"
#include "guest/guest_memory.h"
#include "guest/last_resort.h"
#include "guest/observer.h"
#include "guest/region.h"
#include "guest/registers.h"
#include "guest/simulation.h"
#include "guest/system_calls.h"
#include "machine/machine_file.h"
#include "qemu/plugin_api.h"

extern "C" {
[[gnu::visibility("default")]] int qemu_plugin_version = QEMU_PLUGIN_VERSION;
}

namespace annex::sim {

namespace {

struct Options {
  std::string machine;  // TOML file
  std::string presets;  // folder that `base` in it refers to
  uint64_t seed = 1;
  unsigned roi = 0;        // 1: regions of interest alone are timed and counted
  uint64_t heap = 0;       // bytes between the program and its heap
  unsigned lock_step = 0;  // 1: with QEMU's -one-insn-per-tb: blocks of one instruction
  ObserverOptions observer;
};

// By their names in QEMU's lists.
class QemuRegisters final : public GuestRegisters {
 public:
  // By a thread of the program; which of them is missing, if any.
  const char* find() {
    const std::unique_ptr<GArray, decltype(&free_array)> listed(qemu_plugin_get_registers(), free_array);
    const std::span all(reinterpret_cast<const qemu_plugin_reg_descriptor*>(listed->data), listed->len);
    for (size_t i = 0; i < kGuestRegisters; ++i) {
      const auto found = std::ranges::find(all, std::string_view(kNames[i]), &qemu_plugin_reg_descriptor::name);
      if (found == all.end()) return kNames[i];
      handles_[i] = found->handle;  // which may be null: the first one's is
    }
    return nullptr;
  }
  uint64_t read(GuestRegister which) override {
    GByteArray& out = buffer();
    g_byte_array_set_size(&out, 0);
    uint64_t value = 0;
    if (qemu_plugin_read_register(handle_of(which), &out)) std::memcpy(&value, out.data, sizeof value);
    return value;
  }
  void write(GuestRegister which, uint64_t value) override {
    GByteArray& in = buffer();
    g_byte_array_set_size(&in, sizeof value);
    std::memcpy(in.data, &value, sizeof value);
    qemu_plugin_write_register(handle_of(which), &in);
  }

 private:
  static constexpr const char* kNames[kGuestRegisters] = {"rax", "rcx", "rdx", "rbx", "rsp",     "rbp",
                                                          "rsi", "rdi", "r8",  "r9",  "r10",     "r11",
                                                          "r12", "r13", "r14", "r15", "fs_base", "rip"};
  static void free_array(GArray* array) { g_array_free(array, TRUE); }
  static GByteArray& buffer() {
    static thread_local GByteArray* const own = g_byte_array_new();
    return *own;
  }
  qemu_plugin_register* handle_of(GuestRegister which) const { return handles_[static_cast<size_t>(which)]; }

  qemu_plugin_register* handles_[kGuestRegisters] = {};
};

// What a prefetch of a block names, and which of its instructions it is.
struct PrefetchSite {
  Prefetch prefetch;
  uint16_t instruction = 0;
};

// What the plugin knows, from its start to the end of the process. Never destroyed: the host's threads end in no order.
struct Plugin {
  Options options;
  Machine machine;
  std::unique_ptr<Simulation> simulation;
  std::unique_ptr<SystemCalls> system_calls;
  std::unique_ptr<Region> region;  // where only regions of interest count
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<Observer> observer;
  QemuRegisters registers;
  std::vector<GuestThread*> threads;  // by vCPU; as long as there may be any, so that it never moves
  std::mutex starting;
  std::condition_variable started_one;
  std::map<int64_t, GuestThread*> new_threads;  // that QEMU has not begun to run, by the host's numbers
  bool first_known = false;
  std::mutex mutex;  // of translation
  std::deque<TranslatedBlock> blocks;
  std::deque<PrefetchSite> prefetches;
  bool program_known = false;
  unsigned flushes = 0;  // of QEMU's code buffer
  std::chrono::steady_clock::time_point started;
  pid_t process = 0;
  bool detached = false;  // in a forked child, which is not simulated
};
Plugin* plugin = nullptr;

constexpr size_t kPageBytes = size_t{1} << kPageShift;
constexpr size_t kMostThreads = 4096;  // at a time

[[noreturn]] void refuse(const std::string& what) {
  fmt::print(stderr, "annex-sim: {}\n", what);
  _exit(2);
}

// A CPU that no other simulation has, if there is one: each holds a lock on its own until it ends.
int choose_cpu() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const int lock = open(fmt::format("/tmp/annex-sim-cpu{}", cpu).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) break;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && fcntl(lock, F_DUPFD_CLOEXEC, 901) >= 0) {
      close(lock);  // the other descriptor, out of the program's way, keeps the lock
      return static_cast<int>(cpu);
    }
    close(lock);
  }
  return sched_getcpu();
}

// All of the program's threads take turns on one CPU: a turn then changes hands in some microseconds. As a batch job
// they don't interrupt whoever wakes them, who is about to wait anyway.
void stay_on_one_cpu() {
  static const int cpu = choose_cpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
  const sched_param none = {};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

// Everything that is counted, so far.
nlohmann::json counted() {
  nlohmann::json out;
  plugin->simulation->describe(out);
  out["system_calls"] = plugin->system_calls->to_json();
  return out;
}

std::string describe(const std::string& how) {
  nlohmann::json out;
  out["format"] = "annex-sim 1";
  out["ended"] = how.empty() ? "not yet" : how;
  out["complete"] = how == "exit";
  out["seed"] = plugin->options.seed;
  out["lock_step"] = plugin->options.lock_step != 0;
  if (!how.empty()) plugin->simulation->finish();
  out.update(plugin->region != nullptr ? plugin->region->results() : counted());
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - plugin->started;
  out["host_s"] = host.count();
  out["mips"] = static_cast<double>(plugin->simulation->instructions()) / host.count() / 1e6;
  if (!plugin->system_calls->replaced_by().empty()) out["replaced_by"] = plugin->system_calls->replaced_by();
  return out.dump(1);
}

// --- execution ------------------------------------------------------------------------------------------------------

// In place of what the host's rdtsc said.
void write_time_stamp(const GuestThread& thread) {
  const uint64_t stamp = plugin->system_calls->time_stamp(thread);
  plugin->registers.write(GuestRegister::kRax, stamp & 0xffffffff);
  plugin->registers.write(GuestRegister::kRdx, stamp >> 32);
}

void block_entered(unsigned vcpu, void* data) noexcept {
  if (plugin->detached) return;
  GuestThread& thread = *plugin->threads[vcpu];
  TranslatedBlock& block = *static_cast<TranslatedBlock*>(data);
  if (const TranslatedBlock* before = thread.pending; before != nullptr) {
    if (before->stamps) [[unlikely]]
      write_time_stamp(thread);
    if (before->again != nullptr) [[unlikely]]
      plugin->simulation->end_repeated(thread, block.block.start);
  }
  const unsigned flushes = plugin->flushes;
  plugin->simulation->enter_block(thread, block);
  if (flushes == plugin->flushes) [[likely]]
    return;
  // While it was held its code went.
  Simulation::leave_block(thread, block);
  qemu_plugin_set_pc(block.block.start);
}

// rdtsc, rdtscp: QEMU ends the block there.
bool reads_time_stamp(std::span<const uint8_t> code) {
  return (code.size() == 2 && code[0] == 0x0f && code[1] == 0x31) ||
         (code.size() == 3 && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9);
}

// Of a repeated string instruction: how many accesses an iteration makes; else 0.
uint8_t repeated_accesses(std::span<const uint8_t> code) {
  bool repeated = false;
  for (const uint8_t byte : code) {
    switch (byte) {
      case 0xf2:
      case 0xf3:
        repeated = true;
        break;
      case 0xa4:  // movs
      case 0xa5:
      case 0xa6:  // cmps
      case 0xa7:
        return repeated ? 2 : 0;
      case 0xaa:  // stos
      case 0xab:
      case 0xac:  // lods
      case 0xad:
      case 0xae:  // scas
      case 0xaf:
        return repeated ? 1 : 0;
      default:  // other prefixes: of sizes, of segments, REX
        if (byte != 0x66 && byte != 0x67 && (byte & 0xf0) != 0x40 && (byte & 0xe7) != 0x26 && (byte & 0xfe) != 0x64)
          return 0;
    }
  }
  return 0;
}

void memory_accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void* data) noexcept {
  if (plugin->detached) return;
  plugin->threads[vcpu]->access(address, static_cast<uint16_t>(reinterpret_cast<uintptr_t>(data)),
                                static_cast<uint8_t>(1u << qemu_plugin_mem_size_shift(info)),
                                qemu_plugin_mem_is_store(info));
}

void memory_accessed_repeatedly(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void*) noexcept {
  if (plugin->detached) return;
  plugin->simulation->access_repeated(*plugin->threads[vcpu], address,
                                      static_cast<uint8_t>(1u << qemu_plugin_mem_size_shift(info)),
                                      qemu_plugin_mem_is_store(info));
}

void prefetched(unsigned vcpu, void* data) noexcept {
  if (plugin->detached) return;
  const PrefetchSite& site = *static_cast<PrefetchSite*>(data);
  const auto read = [](uint8_t number) { return plugin->registers.read(static_cast<GuestRegister>(number)); };
  const Address thread = site.prefetch.thread_pointer ? plugin->registers.read(GuestRegister::kThreadPointer) : 0;
  plugin->threads[vcpu]->prefetch(site.prefetch.address(read, thread), site.instruction, site.prefetch.to_write);
}

// --- translation ----------------------------------------------------------------------------------------------------

constexpr size_t kMostBytes = 15;  // of an instruction

// What an instruction at that address may have, as far as its page.
std::span<const uint8_t> code_at(Address address) {
  static std::array<uint8_t, kMostBytes> bytes;  // under the mutex
  const size_t count = std::min(bytes.size(), kPageBytes - address % kPageBytes);
  return {bytes.data(), read_guest(address, bytes.data(), count) ? count : 0};
}

// Whether a marker is at that address: it may go on in another page, if there is one.
bool is_marker_at(Address address) {
  std::array<uint8_t, 9> bytes;
  if (!read_guest(address, bytes.data(), 1)) return false;
  const size_t count = marker_bytes(bytes[0]);
  return read_guest(address, bytes.data(), count) && marker_in({bytes.data(), count}).kind != 0;
}

TranslatedBlock& add_block(std::span<const Instruction> instructions) {
  TranslatedBlock& block = plugin->blocks.emplace_back();
  block.block = plugin->decoder->decode(instructions);
  block.stamps = reads_time_stamp(instructions.back().bytes);
  block.alone = block.block.atomic && block.block.instructions == 1;
  block.function = plugin->simulation->functions().at(block.block.start);
  const Marker& marker = block.block.marker;
  if (marker.kind != 0 && plugin->simulation->follows(marker)) block.function = Function::kMarker;
  return block;
}

void translated(qemu_plugin_tb* tb, void*) noexcept {
  if (plugin->detached) return;
  std::lock_guard guard(plugin->mutex);
  if (!plugin->program_known) {
    // The program itself, which no system call maps.
    plugin->program_known = true;
    plugin->simulation->functions().add_program(qemu_plugin_path_to_binary(), qemu_plugin_start_code());
  }
  const size_t count = qemu_plugin_tb_n_insns(tb);
  std::vector<std::array<uint8_t, kMostBytes>> code(count);
  std::vector<Instruction> instructions;
  instructions.reserve(count);
  uint8_t repeated = 0;
  for (size_t i = 0; i < count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const size_t bytes = qemu_plugin_insn_data(insn, code[i].data(), code[i].size());
    instructions.push_back({.address = qemu_plugin_insn_vaddr(insn), .bytes = {code[i].data(), bytes}});
    repeated = repeated_accesses(instructions.back().bytes);
    qemu_plugin_register_vcpu_mem_cb(insn, repeated > 0 ? memory_accessed_repeatedly : memory_accessed,
                                     QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, reinterpret_cast<void*>(i));
    if (const auto prefetch = prefetch_in(instructions.back().bytes, instructions.back().address)) {
      plugin->prefetches.push_back({*prefetch, static_cast<uint16_t>(i)});
      qemu_plugin_register_vcpu_insn_exec_cb(insn, prefetched, QEMU_PLUGIN_CB_R_REGS, &plugin->prefetches.back());
    }
  }
  Instruction& last = instructions.back();
  last.begins_marker = is_jump_to_next(last.bytes) && is_marker_at(last.address + last.bytes.size());
  TranslatedBlock& block = add_block(instructions);
  if (repeated > 0) {
    block.again = count == 1 ? &block : &add_block({&last, 1});
    block.again->again = block.again;
    block.again->accesses = repeated;
    block.again->searches = (last.bytes.back() & 0xf6) == 0xa6;  // cmps, scas
  }
  // At the start of a block registers are in memory anyway: to ask for them costs nothing.
  qemu_plugin_register_vcpu_tb_exec_cb(tb, block_entered, QEMU_PLUGIN_CB_RW_REGS_PC, &block);
}

// --- threads and system calls ---------------------------------------------------------------------------------------

thread_local bool exits = false;  // this thread has asked for the end of the process, or its own

// QEMU tells of a thread when it begins to run it, at any time of the host's. When it begins in the simulation was
// settled by the thread that has started it, which goes on meanwhile.
GuestThread* new_thread() {
  if (!plugin->first_known) {
    plugin->first_known = true;
    if (const char* missing = plugin->registers.find()) refuse(fmt::format("QEMU knows no register {}", missing));
    return &plugin->simulation->start_thread();
  }
  std::unique_lock lock(plugin->starting);
  auto own = plugin->new_threads.end();
  plugin->started_one.wait(lock,
                           [&] { return (own = plugin->new_threads.find(gettid())) != plugin->new_threads.end(); });
  GuestThread* const thread = own->second;
  plugin->new_threads.erase(own);
  return thread;
}

void thread_started(unsigned vcpu, void*) noexcept {
  if (plugin->detached) return;
  if (vcpu >= kMostThreads) refuse(fmt::format("more than {} threads at a time", kMostThreads));
  plugin->threads[vcpu] = new_thread();
}

// QEMU has cleared the word that says so.
void thread_ended(unsigned vcpu, void*) noexcept {
  if (plugin->detached || plugin->observer->finished()) return;
  plugin->system_calls->ended(*plugin->threads[vcpu]);
  plugin->simulation->end_thread(*plugin->threads[vcpu]);
}

bool system_call(unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
                 uint64_t a6, uint64_t, uint64_t, int64_t* result, void*) noexcept {
  if (plugin->detached) return false;
  exits = number == SYS_exit || number == SYS_exit_group;
  const auto answer = plugin->system_calls->before(*plugin->threads[vcpu], number, {a1, a2, a3, a4, a5, a6});
  if (!plugin->system_calls->replaced_by().empty()) plugin->observer->finish("exec");
  if (answer) *result = *answer;
  return answer.has_value();
}

void system_call_returned(unsigned vcpu, int64_t number, int64_t result, void*) noexcept {
  if (plugin->detached) return;
  if (getpid() != plugin->process) {
    plugin->detached = true;
    return;
  }
  const int64_t answer = number == SYS_brk ? plugin->system_calls->heap_begins(result) : result;
  plugin->system_calls->after(*plugin->threads[vcpu], number, answer);
  if (plugin->system_calls->starts_thread(*plugin->threads[vcpu], number, result)) {
    std::lock_guard guard(plugin->starting);
    plugin->new_threads[result] = &plugin->simulation->start_thread();
    plugin->started_one.notify_all();
  }
  if (number == SYS_sched_setaffinity) stay_on_one_cpu();
  if (answer == result) return;
  // A thread that is sent on is given no result by QEMU.
  plugin->registers.write(GuestRegister::kRax, static_cast<uint64_t>(answer));
  qemu_plugin_set_pc(plugin->registers.read(GuestRegister::kNext));
}

// So QEMU ends a program that a signal kills, too: see kill.
void program_ended(void*) noexcept {
  if (plugin->detached || !exits || getpid() != plugin->process) return;
  plugin->observer->finish("exit");
}

void code_flushed(void*) { ++plugin->flushes; }

// --- installation ---------------------------------------------------------------------------------------------------

void set_option(Options& options, std::string_view argument) {
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : argument.substr(equals + 1);
  const auto number = [&]<class Number>(Number& out) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size())
      refuse(fmt::format("{}: a number, not '{}'", name, value));
  };
  if (name == "machine") {
    options.machine = value;
  } else if (name == "presets") {
    options.presets = value;
  } else if (name == "out") {
    options.observer.out = value;
  } else if (name == "seed") {
    number(options.seed);
  } else if (name == "heap") {
    number(options.heap);
  } else if (name == "lockstep") {
    number(options.lock_step);
  } else if (name == "roi") {
    number(options.roi);
  } else if (name == "progress") {
    number(options.observer.progress);
  } else if (name == "control") {
    number(options.observer.control);
  } else if (name == "watchdog") {
    number(options.observer.watchdog_s);
  } else {
    refuse(fmt::format("no such option: {}", name));
  }
}

void install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) noexcept {
  end_on_exceptions();
  if (std::string_view(info->target_name) != "x86_64" || info->system_emulation) {
    refuse(fmt::format("for qemu-x86_64 in user mode, not {}", info->target_name));
  }
  if (cpu_exec_start == nullptr || cpu_exec_end == nullptr || &current_cpu == nullptr) {
    refuse("this QEMU does not export what the simulator needs (cpu_exec_start); make sim builds one that does");
  }
  plugin = std::make_unique<Plugin>().release();
  for (int i = 0; i < argc; ++i) set_option(plugin->options, argv[i]);
  const auto problems = read_machine(plugin->options.machine, plugin->options.presets, plugin->machine);
  for (const std::string& problem : problems) fmt::print(stderr, "annex-sim: {}\n", problem);
  if (!problems.empty()) _exit(2);
  plugin->decoder = make_x86_decoder();
  if (plugin->decoder == nullptr) refuse("Capstone cannot be opened for x86-64");
  if (plugin->options.lock_step != 0) plugin->decoder = make_alone_decoder(std::move(plugin->decoder), code_at);
  plugin->process = getpid();
  plugin->threads.resize(kMostThreads);
  plugin->started = std::chrono::steady_clock::now();
  const Bracket bracket = {.leave = [] { cpu_exec_end(current_cpu); },
                           .enter = [] { cpu_exec_start(current_cpu); },
                           .refuse = [](const char* why) { refuse(why); },
                           .registers = &plugin->registers};
  plugin->simulation =
      std::make_unique<Simulation>(plugin->machine, plugin->options.seed, plugin->options.lock_step != 0, bracket);
  plugin->system_calls = std::make_unique<SystemCalls>(*plugin->simulation, plugin->options.heap);
  if (plugin->options.roi != 0) {
    plugin->region = std::make_unique<Region>(counted);
    plugin->simulation->time_only(*plugin->region);
  }
  plugin->observer = std::make_unique<Observer>(plugin->options.observer, *plugin->simulation, describe);
  stay_on_one_cpu();
  // Not for programs that this one starts.
  for (const int fd : {plugin->options.observer.progress, plugin->options.observer.control})
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  plugin->observer->start();
  qemu_plugin_register_vcpu_init_cb(id, thread_started, nullptr);
  qemu_plugin_register_vcpu_exit_cb(id, thread_ended, nullptr);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated, nullptr);
  qemu_plugin_register_vcpu_syscall_filter_cb(id, system_call, nullptr);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, system_call_returned, nullptr);
  qemu_plugin_register_flush_cb(id, code_flushed, nullptr);
  qemu_plugin_register_atexit_cb(id, program_ended, nullptr);
}

}  // namespace

}  // namespace annex::sim

extern "C" [[gnu::visibility("default")]] int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info,
                                                                  int argc, char** argv) {
  annex::sim::install(id, info, argc, argv);
  return 0;
}

// QEMU ends a program that was killed by a signal with this call of the C library's, and tells plugins nothing. The
// plugin is preloaded into QEMU, so it comes here first; what the program itself sends goes by QEMU's own system calls.
extern "C" [[gnu::visibility("default")]] int kill(pid_t process, int signal) noexcept {
  using namespace annex::sim;
  if (plugin != nullptr && !plugin->detached && process == plugin->process && getpid() == process) {
    plugin->observer->finish(fmt::format("signal {}", signal));
  }
  return static_cast<int>(syscall(SYS_kill, process, signal));
}
