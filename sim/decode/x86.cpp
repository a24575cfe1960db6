// x86-64 to micro-operations, with Capstone's lists of what each instruction reads and writes.
//
// Splitting, as cores since Haswell do it: a load, fused with the operation on it; an operation; a store. Compare and
// branch are one. Registers are whole: writing 8 or 16 bits of one reads it first. Instructions that zero a register
// don't read it. Pushes, pops, calls and returns use the stack pointer but don't make others wait for it, as a stack
// engine sees to. Of a repeated string instruction one iteration is decoded, which is a run of its own; its block ends
// as kOther when it is the last.
//
// Markers (markers.h) are nothing: a marked program costs what it would cost without them.
//
// Simplifications: classes go by names; flags are one register, as is the x87 stack; moves between registers are
// executed; load fences and serializing instructions are full fences or plain microcode; store fences are free, as
// stores are in order; of an instruction's registers, the fifth source and later ones are left out
// (compare-and-exchange of 16 bytes, some string instructions); gathers are one load, others are added at run time.
#include <capstone/capstone.h>

#include <algorithm>
#include <array>
#include <utility>

#include "decode/decoder.h"
#include "decode/markers.h"
#include "decode/prefetch.h"
#include "decode/x86_tables.h"

namespace annex::sim {

namespace x86 {

// A few registers, each once.
class Registers {
 public:
  Registers(std::initializer_list<Register> registers = {}) {
    for (const Register reg : registers) add(reg);
  }
  void add(Register reg) {
    if (reg != kNoRegister && count_ < registers_.size() && std::find(begin(), end(), reg) == end()) {
      registers_[count_++] = reg;
    }
  }
  void add(const Registers& others) {
    for (const Register reg : others) add(reg);
  }
  void remove(Register reg) {
    const auto at = std::find(registers_.begin(), registers_.begin() + count_, reg);
    if (at == registers_.begin() + count_) return;
    std::copy(at + 1, registers_.begin() + count_, at);
    --count_;
  }
  void clear() { count_ = 0; }
  void sort() { std::sort(registers_.begin(), registers_.begin() + count_); }
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  Register operator[](size_t i) const { return registers_[i]; }
  const Register* begin() const { return registers_.data(); }
  const Register* end() const { return registers_.data() + count_; }

 private:
  std::array<Register, 12> registers_ = {};
  size_t count_ = 0;
};

// Prefetches, hints that are nops, and what newer processors made of them (endbr, shadow stacks): by their bytes, as
// disassemblers differ in how many they know.
bool is_hint(std::span<const uint8_t> bytes) {
  size_t i = 0;
  const auto is_prefix = [](uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x36 ||
           byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65 || (byte & 0xf0) == 0x40;
  };
  while (i < bytes.size() && is_prefix(bytes[i])) ++i;
  if (i + 1 >= bytes.size() || bytes[i] != 0x0f) return false;
  return bytes[i + 1] == 0x0d || (bytes[i + 1] >= 0x18 && bytes[i + 1] <= 0x1f);
}

// rdpkru and wrpkru, of which Capstone 5 knows no registers and 4 nothing.
bool is_of_protection_keys(std::span<const uint8_t> bytes) {
  return bytes.size() == 3 && bytes[0] == 0x0f && bytes[1] == 0x01 && (bytes[2] == 0xee || bytes[2] == 0xef);
}

// One instruction, sorted: its memory operands, and the registers that its operation reads and writes.
struct Parts {
  std::string_view name;  // without the v of AVX
  UopClass kind = UopClass::kAlu;
  Registers sources, destinations;
  Registers loads[2], stores[2];  // addresses
  unsigned load_count = 0, store_count = 0;
  bool vector = false;
  bool immediate = false;  // has an immediate operand: of a jump or call, its target
};

class X86Decoder final : public Decoder {
 public:
  X86Decoder() {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) != CS_ERR_OK) return;
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    instruction_ = cs_malloc(handle_);
  }
  ~X86Decoder() override {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (handle_ != 0) cs_close(&handle_);
  }
  X86Decoder(const X86Decoder&) = delete;
  X86Decoder& operator=(const X86Decoder&) = delete;

  bool works() const { return instruction_ != nullptr; }

  Block decode(std::span<const Instruction> instructions) override {
    Block block;
    block.start = instructions.front().address;
    block.last = instructions.back().address;
    block.fall_through = block.last + instructions.back().bytes.size();
    block.instructions = static_cast<uint32_t>(instructions.size());
    block_ = &block;
    fusible_ = false;
    for (number_ = 0; number_ < instructions.size(); ++number_) {
      block.end = BlockEnd::kFallThrough;  // the last one's counts
      locked_ = false;
      const size_t before = block.uops.size();
      add(instructions[number_]);
      if (block.uops.size() > before) block.uops[before].first = true;
      for (size_t i = before; i < block.uops.size(); ++i) block.uops[i].locked = locked_;
      block.atomic = block.atomic || locked_;
    }
    block.slots = static_cast<uint32_t>(std::count_if(block.uops.begin(), block.uops.end(), takes_slot));
    return block;
  }

 private:
  void add(const Instruction& instruction) {
    const bool fusible = std::exchange(fusible_, false);
    const uint8_t* bytes = instruction.bytes.data();
    size_t size = instruction.bytes.size();
    uint64_t address = instruction.address;
    if (const Marker marker = marker_in(instruction.bytes); marker.kind != 0 || instruction.begins_marker) {
      --block_->instructions;
      if (number_ == 0) block_->marker = marker;
      return;
    }
    if (is_hint(instruction.bytes)) {
      emit(UopClass::kNop, {}, {});
      if (const auto prefetch = prefetch_in(instruction.bytes, instruction.address)) {
        ++block_->prefetches;
        Uop& uop = block_->uops.back();
        uop.prefetch = true;
        if (prefetch->base != Prefetch::kNone) uop.sources[0] = static_cast<Register>(kFirstInteger + prefetch->base);
        if (prefetch->index != Prefetch::kNone) uop.sources[1] = static_cast<Register>(kFirstInteger + prefetch->index);
      }
      return;
    }
    if (is_of_protection_keys(instruction.bytes)) {
      constexpr Register kAccumulator = kFirstInteger, kCounter = kFirstInteger + 1, kData = kFirstInteger + 2;
      if (instruction.bytes[2] == 0xee) return emit(UopClass::kMicrocode, {kCounter}, {kAccumulator, kData});
      return emit(UopClass::kMicrocode, {kAccumulator, kCounter, kData}, {});
    }
    if (!cs_disasm_iter(handle_, &bytes, &size, &address, instruction_)) return emit(UopClass::kAlu, {}, {});

    const Parts parts = sort();
    const uint8_t prefix = instruction_->detail->x86.prefix[0];
    if (is_one_of(parts.name, {"jmp", "call", "ret"}) || begins(parts.name, {"j", "loop"})) {
      add_branch(parts, fusible);
    } else if (begins(parts.name, {"push", "popf"}) || is_one_of(parts.name, {"pop", "leave"})) {
      add_stack(parts);
    } else if (is_string(parts)) {
      add_string(parts);
      if (prefix == X86_PREFIX_REP || prefix == X86_PREFIX_REPNE) block_->end = BlockEnd::kOther;
    } else {
      locked_ = prefix == X86_PREFIX_LOCK || (parts.name == "xchg" && parts.load_count + parts.store_count > 0);
      if (is_one_of(parts.name, {"syscall", "sysenter"})) block_->end = BlockEnd::kSystemCall;
      add_plain(parts);
      fusible_ = parts.store_count == 0 && is_one_of(parts.name, {"cmp", "test", "add", "sub", "and", "inc", "dec"});
    }
  }

  // Reads Capstone's answer.
  Parts sort() const {
    const cs_detail& detail = *instruction_->detail;
    Parts parts;
    parts.name = cs_insn_name(handle_, instruction_->id);
    // Operands that look like memory, and aren't accessed.
    const bool no_access = is_one_of(parts.name, {"lea", "nop", "clflush", "clflushopt", "clwb"});
    const unsigned operands = detail.x86.op_count;
    for (unsigned i = 0; i < operands; ++i) {
      const cs_x86_op& operand = detail.x86.operands[i];
      const unsigned access = access_of(parts.name, i);
      const bool reads = (access & CS_AC_READ) != 0;
      const bool writes = (access & CS_AC_WRITE) != 0;
      if (operand.type == X86_OP_REG) {
        const Register reg = kRegisterOf[operand.reg];
        parts.vector = parts.vector || is_vector(reg);
        if (reads || (is_integer(reg) && operand.size < 4)) parts.sources.add(reg);
        if (writes) parts.destinations.add(reg);
      } else if (operand.type == X86_OP_MEM) {
        const Registers address = {kRegisterOf[operand.mem.base], kRegisterOf[operand.mem.index]};
        if (no_access) {
          parts.sources.add(address);
        } else {
          if (reads && parts.load_count < 2) parts.loads[parts.load_count++] = address;
          if (writes && parts.store_count < 2) parts.stores[parts.store_count++] = address;
        }
      } else {
        parts.immediate = true;
      }
    }
    // The stack pointer is left to the stack engine.
    for (unsigned i = 0; i < detail.regs_read_count; ++i) parts.sources.add(kRegisterOf[detail.regs_read[i]]);
    for (unsigned i = 0; i < detail.regs_write_count; ++i) parts.destinations.add(kRegisterOf[detail.regs_write[i]]);
    if (parts.name == "test") parts.destinations.add(kFlags);  // Capstone 5 forgets it of test with memory
    if (parts.name == "xchg") {                                // and has the other order of registers
      parts.sources.sort();
      parts.destinations.sort();
    }
    classify(parts);

    if (operands >= 2 && forgets(parts.name)) {
      const cs_x86_op& one = detail.x86.operands[operands - 2];
      const cs_x86_op& other = detail.x86.operands[operands - 1];
      const bool both = one.type == X86_OP_REG && other.type == X86_OP_REG;
      if (both && one.reg == other.reg && one.size >= 4) parts.sources.clear();
    }
    return parts;
  }

  // What an operand is used for. Capstone 4 is wrong about many first operands, mostly those in memory; 5 says of cmov
  // that it only writes.
  unsigned access_of(std::string_view name, unsigned i) const {
    const cs_x86& x86 = instruction_->detail->x86;
    const cs_x86_op& operand = x86.operands[i];
    if (i == 0) {
      if (is_one_of(name, {"cmp", "test"})) return CS_AC_READ;
      if (begins(name, {"cmpxchg", "cmov", "rol", "ror"}) && name != "rorx") return CS_AC_READ | CS_AC_WRITE;
      const bool from_vector =
          x86.op_count > 1 && x86.operands[1].type == X86_OP_REG && is_vector(kRegisterOf[x86.operands[1].reg]);
      if (operand.type == X86_OP_MEM && (from_vector || writes_first_operand(name))) return CS_AC_WRITE;
    }
    if (operand.access != 0) return operand.access;
    return i == 0 ? CS_AC_READ | CS_AC_WRITE : CS_AC_READ;
  }

  static void classify(Parts& parts) {
    std::string_view& name = parts.name;
    const bool x87 = name.starts_with('f') && !parts.vector && !begins(name, {"fxsave", "fxrstor"});
    if (parts.vector) {
      if (name.starts_with('v')) name.remove_prefix(1);
      parts.kind = first_fit(kVectorRules, name);
    } else if (x87) {
      parts.kind = first_fit(kX87Rules, name);
      parts.sources.remove(kX87);
      parts.destinations.remove(kX87);
      if (!begins(name, {"fld", "fild"})) parts.sources.add(kX87);
      if (!begins(name, {"fst", "fist", "fnst"})) parts.destinations.add(kX87);
    } else {
      parts.kind = first_fit(kIntegerRules, name);
    }
    // Left out by Capstone 4.
    if (name.starts_with("cmpxchg")) parts.destinations.add({kFlags, kFirstInteger});
    if (name == "xadd") parts.destinations.add(kFlags);
    // What may be reported as written only, and keeps a part of what was there.
    if (begins(name, {"cmov", "movlp", "movhp"})) parts.sources.add(parts.destinations);
  }

  void add_branch(const Parts& parts, bool fusible) {
    Registers sources = parts.sources;
    if (parts.load_count > 0) {
      emit(UopClass::kLoad, parts.loads[0], {kLoaded});
      sources.add(kLoaded);
    }
    if (parts.name == "jmp") {
      block_->end = parts.immediate ? BlockEnd::kJump : BlockEnd::kIndirectJump;
      emit(UopClass::kBranch, sources, {}, parts.load_count > 0);
    } else if (parts.name == "call") {
      block_->end = parts.immediate ? BlockEnd::kCall : BlockEnd::kIndirectCall;
      sources.remove(kStackPointer);
      emit_store({kStackPointer}, {});
      emit(UopClass::kBranch, sources, {});
    } else if (parts.name == "ret") {
      block_->end = BlockEnd::kReturn;
      emit(UopClass::kLoad, {kStackPointer}, {kLoaded});
      emit(UopClass::kBranch, {kLoaded}, {}, true);
    } else {
      block_->end = BlockEnd::kConditional;
      const bool on_flags = sources.size() == 1 && sources[0] == kFlags;
      if (fusible && on_flags) {
        block_->uops.back().kind = UopClass::kBranch;
        return;
      }
      if (parts.name.starts_with("loop")) emit(UopClass::kAlu, sources, parts.destinations);
      emit(UopClass::kBranch, sources, {});
    }
  }

  void add_stack(const Parts& parts) {
    const bool flags = begins(parts.name, {"pushf", "popf"});
    if (parts.name == "leave") {
      emit(UopClass::kAlu, {kFramePointer}, {kStackPointer});
      emit(UopClass::kLoad, {kFramePointer}, {kFramePointer});
    } else if (parts.name.starts_with("push")) {
      Registers data = parts.sources;
      if (parts.load_count > 0) {
        emit(UopClass::kLoad, parts.loads[0], {kLoaded});
        data = {kLoaded};
      } else if (flags) {
        emit(UopClass::kMicrocode, {kFlags}, {kResult});
        data = {kResult};
      }
      emit_store({kStackPointer}, data);
    } else {
      const bool direct = !flags && parts.store_count == 0;
      Registers destinations = parts.destinations;
      if (destinations.size() > 1) destinations.remove(kStackPointer);
      emit(UopClass::kLoad, {kStackPointer}, direct ? destinations : Registers{kLoaded});
      if (flags) emit(UopClass::kMicrocode, {kLoaded}, {kFlags});
      if (parts.store_count > 0) emit_store(parts.stores[0], {kLoaded});
    }
  }

  static bool is_string(const Parts& parts) {
    return !parts.vector && parts.name.size() == 5 && begins(parts.name, {"movs", "stos", "lods", "cmps", "scas"}) &&
           std::string_view("bwdq").find(parts.name[4]) != std::string_view::npos;
  }

  // The pointers move on without waiting for the data; the counter, which is never needed soon, is left out.
  void add_string(const Parts& parts) {
    constexpr auto kSource = static_cast<Register>(kFirstInteger + 6);
    constexpr auto kDestination = static_cast<Register>(kFirstInteger + 7);
    constexpr Register kAccumulator = kFirstInteger;
    Registers pointers;
    const auto uses = [&](Register pointer) {
      pointers.add(pointer);
      return Registers{pointer};
    };
    if (parts.name.starts_with("movs")) {
      emit(UopClass::kLoad, uses(kSource), {kLoaded});
      emit_store(uses(kDestination), {kLoaded});
    } else if (parts.name.starts_with("stos")) {
      emit_store(uses(kDestination), {kAccumulator});
    } else if (parts.name.starts_with("lods")) {
      emit(UopClass::kLoad, uses(kSource), {kAccumulator});
    } else if (parts.name.starts_with("scas")) {
      emit(UopClass::kLoad, uses(kDestination), {kLoaded});
      emit(UopClass::kAlu, {kAccumulator, kLoaded}, {kFlags}, true);
    } else {
      emit(UopClass::kLoad, uses(kSource), {kResult});
      emit(UopClass::kLoad, uses(kDestination), {kLoaded});
      emit(UopClass::kAlu, {kResult, kLoaded}, {kFlags}, true);
    }
    emit(UopClass::kAlu, pointers, pointers);
  }

  void add_plain(const Parts& parts) {
    if (parts.kind == UopClass::kNop || parts.kind == UopClass::kFence || parts.kind == UopClass::kPause) {
      return emit(parts.kind, {}, {});
    }
    const bool moves = only_moves(parts.name) && parts.kind != UopClass::kMicrocode;
    if (moves && parts.load_count == 1 && parts.store_count == 0 && parts.sources.empty()) {
      return emit(UopClass::kLoad, parts.loads[0], parts.destinations);
    }
    if (moves && parts.store_count == 1 && parts.load_count == 0) return emit_store(parts.stores[0], parts.sources);

    Registers sources;
    Registers destinations;
    for (unsigned i = 0; i < parts.load_count; ++i) {
      emit(UopClass::kLoad, parts.loads[i], {kLoaded});
      sources.add(kLoaded);
    }
    if (parts.store_count > 0) destinations.add(kResult);
    sources.add(parts.sources);
    destinations.add(parts.destinations);
    emit(parts.kind, sources, destinations, parts.load_count > 0);
    for (unsigned i = 0; i < parts.store_count; ++i) emit_store(parts.stores[i], {kResult});
  }

  void emit_store(const Registers& address, const Registers& data) {
    Registers sources = address;
    sources.add(data);
    emit(UopClass::kStore, sources, {});
    block_->uops.back().addresses = static_cast<uint8_t>(address.size());
  }

  // More destinations than a micro-op has take further ones, as real cores need them for a wide product.
  void emit(UopClass kind, const Registers& sources, const Registers& destinations, bool fused = false) {
    Uop uop{.kind = kind, .fused = fused, .instruction = static_cast<uint16_t>(number_)};
    std::copy_n(sources.begin(), std::min<size_t>(sources.size(), std::size(uop.sources)), uop.sources);
    size_t done = std::min<size_t>(destinations.size(), Destinations::kMost);
    for (size_t i = 0; i < done; ++i) uop.destinations.set(i, *(destinations.begin() + i));
    block_->uops.push_back(uop);
    while (done < destinations.size()) {
      Uop more{.kind = UopClass::kAlu, .instruction = uop.instruction};
      more.sources[0] = uop.destinations[0];
      more.destinations = destinations[done++];
      block_->uops.push_back(more);
    }
  }

  csh handle_ = 0;
  cs_insn* instruction_ = nullptr;

  // Of the block that is being decoded.
  Block* block_ = nullptr;
  size_t number_ = 0;
  bool locked_ = false;
  bool fusible_ = false;  // the instruction before can be one with a conditional branch
};

}  // namespace x86

std::unique_ptr<Decoder> make_x86_decoder() {
  auto decoder = std::make_unique<x86::X86Decoder>();
  if (!decoder->works()) return nullptr;
  return decoder;
}

}  // namespace annex::sim
