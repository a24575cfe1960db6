// The x86-64 decoder: instructions and the micro-ops that they should become.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "decode/alone.h"
#include "decode/prefetch.h"

namespace annex::sim {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  std::istringstream in(hex);
  for (unsigned byte; in >> std::hex >> byte;) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

std::string name_of_register(Register reg) {
  constexpr const char* kIntegers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                       "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  if (reg >= kFirstInteger && reg < kFirstInteger + 16) return kIntegers[reg - kFirstInteger];
  if (reg == kFlags) return "flags";
  if (reg == kX87) return "x87";
  if (reg == kLoaded) return "loaded";
  if (reg == kResult) return "result";
  if (reg >= kFirstVector && reg < kX87) return "v" + std::to_string(reg - kFirstVector);
  return "?";
}

// "load rbx > loaded; +alu rax loaded > rax flags": + for fused, ! for locked.
std::string text_of(const Block& block) {
  std::string text;
  for (const Uop& uop : block.uops) {
    if (!text.empty()) text += "; ";
    if (uop.fused) text += "+";
    if (uop.locked) text += "!";
    text += name_of(uop.kind);
    for (const Register reg : uop.sources) {
      if (reg != kNoRegister) text += " " + name_of_register(reg);
    }
    if (uop.destinations[0] != kNowhere) text += " >";
    for (const Register reg : uop.destinations) {
      if (reg != kNowhere) text += " " + name_of_register(reg);
    }
  }
  return text;
}

// A block of instructions, each its bytes in hexadecimal.
Block decode(const std::vector<std::string>& instructions) {
  static const std::unique_ptr<Decoder> decoder = make_x86_decoder();
  std::vector<Bytes> bytes;
  for (const std::string& hex : instructions) bytes.push_back(bytes_of(hex));
  std::vector<Instruction> input;
  Address address = 0x401000;
  for (const Bytes& one : bytes) {
    input.push_back({address, one});
    address += one.size();
  }
  return decoder->decode(input);
}

std::string uops(const std::string& instruction) { return text_of(decode({instruction})); }
std::string uops_of_all(const std::vector<std::string>& instructions) { return text_of(decode(instructions)); }

// nopl 0x6d6c6302(%rsi,%r9,1), and another nop of that form.
TEST(Decoder, AMarkerIsNothing) {
  const Block marked = decode({"42 0f 1f 84 0e 02 63 6c 6d", "48 39 c8"});
  EXPECT_EQ(text_of(marked), "alu rax rcx > flags");
  EXPECT_EQ(marked.instructions, 1u);
  EXPECT_EQ(marked.slots, 1u);
  EXPECT_EQ(marked.marker.kind, 2);
  EXPECT_EQ(name_of_register(marked.marker.first), "rsi");
  EXPECT_EQ(name_of_register(marked.marker.second), "r9");
  EXPECT_EQ(marked.uops.front().instruction, 1);  // as its accesses are numbered
  EXPECT_EQ(marked.fall_through, marked.start + 12);

  const Block plain = decode({"0f 1f 84 00 00 00 00 00", "48 39 c8"});
  EXPECT_EQ(plain.marker.kind, 0);
  EXPECT_EQ(plain.instructions, 2u);
  EXPECT_EQ(text_of(plain), "nop; alu rax rcx > flags");
}

TEST(Decoder, AJumpToAMarkerIsNothingAndAnotherIsAJump) {
  static const std::unique_ptr<Decoder> decoder = make_x86_decoder();
  const Bytes bytes = bytes_of("eb 00");
  const Instruction jump = {0x401000, bytes, true};
  const Block to_marker = decoder->decode({&jump, 1});
  EXPECT_TRUE(to_marker.uops.empty());
  EXPECT_EQ(to_marker.instructions, 0u);
  EXPECT_EQ(to_marker.end, BlockEnd::kFallThrough);
  const Block other = decode({"eb 00"});
  EXPECT_EQ(text_of(other), "branch");
  EXPECT_EQ(other.end, BlockEnd::kJump);
}

TEST(Decoder, StoresKnowWhichSourcesAreTheirAddress) {
  const auto addresses = [](const std::string& instruction) {
    unsigned sum = 0;
    for (const Uop& uop : decode({instruction}).uops) sum += uop.kind == UopClass::kStore ? uop.addresses : 0;
    return sum;
  };
  EXPECT_EQ(addresses("48 89 03"), 1);     // mov [rbx], rax
  EXPECT_EQ(addresses("48 89 04 8b"), 2);  // mov [rbx + 4 rcx], rax
  EXPECT_EQ(addresses("48 01 03"), 1);     // add [rbx], rax
  EXPECT_EQ(addresses("53"), 1);           // push rbx
  EXPECT_EQ(addresses("e8 00 00 00 00"), 1);
  EXPECT_EQ(addresses("48 ab"), 1);  // stosq
}

TEST(Decoder, SoftwarePrefetchesAreCounted) {
  EXPECT_EQ(decode({"0f 18 08", "0f 18 07", "41 0f 18 1c 24", "0f 0d 08"}).prefetches, 4);  // t0, nta, t2 r12, w
  EXPECT_EQ(decode({"f3 0f 1e fa", "0f 1f 44 00 00", "0f 18 20", "90"}).prefetches, 0);     // endbr64 and nops
}

TEST(Decoder, APrefetchWaitsForItsAddress) {
  const Block block = decode({"42 0f 18 4c 83 40"});  // prefetcht0 [rbx + 4 r8 + 64]
  ASSERT_EQ(block.uops.size(), 1);
  EXPECT_TRUE(block.uops[0].prefetch);
  EXPECT_EQ(block.uops[0].sources[0], kFirstInteger + 3);
  EXPECT_EQ(block.uops[0].sources[1], kFirstInteger + 8);
}

// Registers are worth 0x1000 times their number, fs 0x900000; the instruction is at 0x400000.
TEST(Decoder, WhatAPrefetchNames) {
  const auto address = [](const std::vector<uint8_t>& code) {
    const auto found = prefetch_in(code, 0x400000);
    return found ? found->address([](uint8_t number) { return uint64_t{number} * 0x1000; }, 0x900000) : 0;
  };
  EXPECT_EQ(address({0x0f, 0x18, 0x08}), 0);                                               // t0 [rax]
  EXPECT_EQ(address({0x0f, 0x18, 0x0b}), 0x3000);                                          // [rbx]
  EXPECT_EQ(address({0x41, 0x0f, 0x18, 0x0b}), 0xb000);                                    // [r11]
  EXPECT_EQ(address({0x0f, 0x18, 0x4b, 0xc0}), 0x3000 - 64);                               // [rbx - 64]
  EXPECT_EQ(address({0x0f, 0x18, 0x8b, 0x00, 0x01, 0x00, 0x00}), 0x3100);                  // [rbx + 256]
  EXPECT_EQ(address({0x0f, 0x18, 0x0d, 0x00, 0x01, 0x00, 0x00}), 0x400107);                // [rip + 256]
  EXPECT_EQ(address({0x42, 0x0f, 0x18, 0x4c, 0x83, 0x40}), 0x3000 + 4 * 0x8000 + 64);      // [rbx + 4 r8 + 64]
  EXPECT_EQ(address({0x0f, 0x18, 0x0c, 0x24}), 0x4000);                                    // [rsp]
  EXPECT_EQ(address({0x41, 0x0f, 0x18, 0x0c, 0x24}), 0xc000);                              // [r12]
  EXPECT_EQ(address({0x41, 0x0f, 0x18, 0x4d, 0x00}), 0xd000);                              // [r13]
  EXPECT_EQ(address({0x0f, 0x18, 0x0c, 0xcd, 0x00, 0x02, 0x00, 0x00}), 8 * 0x1000 + 512);  // [8 rcx + 512]
  EXPECT_EQ(address({0x64, 0x0f, 0x18, 0x0b}), 0x903000);                                  // fs:[rbx]
  EXPECT_TRUE(prefetch_in(std::vector<uint8_t>{0x0f, 0x0d, 0x0b}, 0)->to_write);           // prefetchw
  EXPECT_FALSE(prefetch_in(std::vector<uint8_t>{0x0f, 0x18, 0x0b}, 0)->to_write);
  EXPECT_FALSE(prefetch_in(std::vector<uint8_t>{0x0f, 0x1f, 0x0b}, 0));        // a nop
  EXPECT_FALSE(prefetch_in(std::vector<uint8_t>{0x0f, 0x18, 0x8b, 0x00}, 0));  // cut off
}

TEST(Decoder, ABlockTakesASlotForEachMicroOpThatIsNotFused) {
  const Block block = decode({"48 03 03", "48 89 03", "48 39 d8", "75 00"});  // add rax, [rbx]; store; cmp and jne
  EXPECT_EQ(block.uops.size(), 4);
  EXPECT_EQ(block.slots, 3);
}

TEST(Decoder, BlocksHaveTheirAddresses) {
  const Block block = decode({"90", "48 89 d8", "c3"});
  EXPECT_EQ(block.start, 0x401000);
  EXPECT_EQ(block.last, 0x401004);
  EXPECT_EQ(block.fall_through, 0x401005);
  EXPECT_EQ(block.instructions, 3);
  EXPECT_FALSE(block.atomic);
  ASSERT_EQ(block.uops.size(), 4);
  EXPECT_EQ(block.uops[1].instruction, 1);
  EXPECT_EQ(block.uops[3].instruction, 2);
  EXPECT_TRUE(block.uops[2].first);
  EXPECT_FALSE(block.uops[3].first);
}

TEST(Decoder, MovesAndWidths) {
  EXPECT_EQ(uops("48 89 d8"), "alu rbx > rax");                          // mov rax, rbx
  EXPECT_EQ(uops("88 d8"), "alu rax rbx > rax");                         // mov al, bl: keeps the rest of rax
  EXPECT_EQ(uops("88 dc"), "alu rax rbx > rax");                         // mov ah, bl
  EXPECT_EQ(uops("48 c7 c0 05 00 00 00"), "alu > rax");                  // mov rax, 5
  EXPECT_EQ(uops("8b 44 8b 08"), "load rbx rcx > rax");                  // mov eax, [rbx+rcx*4+8]
  EXPECT_EQ(uops("0f b6 07"), "load rdi > rax");                         // movzx eax, byte [rdi]
  EXPECT_EQ(uops("8a 07"), "load rdi > loaded; +alu loaded rax > rax");  // mov al, [rdi]
  EXPECT_EQ(uops("48 89 07"), "store rdi rax");                          // mov [rdi], rax
  EXPECT_EQ(uops("c7 04 37 05 00 00 00"), "store rdi rsi");              // mov dword [rdi+rsi], 5
  EXPECT_EQ(uops("64 48 8b 04 25 28 00 00 00"), "load > rax");           // mov rax, fs:[0x28]
  EXPECT_EQ(uops("48 8b 05 00 01 00 00"), "load > rax");                 // mov rax, [rip+0x100]
  EXPECT_EQ(uops("48 0f c3 07"), "store rdi rax");                       // movnti [rdi], rax
  EXPECT_EQ(uops("48 63 c3"), "alu rbx > rax");                          // movsxd rax, ebx
  EXPECT_EQ(uops("48 93"), "alu rax rbx > rax rbx");                     // xchg rbx, rax: not locked
}

TEST(Decoder, Arithmetic) {
  EXPECT_EQ(uops("48 01 d8"), "alu rax rbx > rax flags");                         // add rax, rbx
  EXPECT_EQ(uops("48 03 03"), "load rbx > loaded; +alu loaded rax > rax flags");  // add rax, [rbx]
  EXPECT_EQ(uops("48 01 03"),                                                     // add [rbx], rax
            "load rbx > loaded; +alu loaded rax > result flags; store rbx result");
  EXPECT_EQ(uops("48 11 d0"), "alu rax rdx flags > rax flags");               // adc rax, rdx
  EXPECT_EQ(uops("48 3b 07"), "load rdi > loaded; +alu loaded rax > flags");  // cmp rax, [rdi]
  EXPECT_EQ(uops("f6 07 05"), "load rdi > loaded; +alu loaded > flags");      // test byte [rdi], 5
  EXPECT_EQ(uops("48 8d 04 0b"), "alu rbx rcx > rax");                        // lea rax, [rbx+rcx]
  EXPECT_EQ(uops("48 0f af c3"), "mul rax rbx > rax flags");                  // imul rax, rbx
  EXPECT_EQ(uops("48 f7 e1"), "mul rcx rax > rax rdx; alu rax > flags");      // mul rcx
  EXPECT_EQ(uops("48 f7 f1"), "div rcx rax rdx > rax rdx; alu rax > flags");  // div rcx
  EXPECT_EQ(uops("48 d3 e0"), "shift rax rcx > rax flags");                   // shl rax, cl
  EXPECT_EQ(uops("48 c1 07 05"),                                              // rol qword [rdi], 5
            "load rdi > loaded; +shift loaded > result flags; store rdi result");
  EXPECT_EQ(uops("48 0f 45 c3"), "alu rax rbx flags > rax");            // cmovne rax, rbx
  EXPECT_EQ(uops("0f 94 c0"), "alu rax flags > rax");                   // sete al
  EXPECT_EQ(uops("0f 94 07"), "alu flags > result; store rdi result");  // sete [rdi]
  EXPECT_EQ(uops("f3 48 0f b8 c3"), "mul rbx > rax flags");             // popcnt rax, rbx
}

TEST(Decoder, ZeroingReadsNothing) {
  EXPECT_EQ(uops("31 c0"), "alu > rax flags");            // xor eax, eax
  EXPECT_EQ(uops("48 29 c0"), "alu > rax flags");         // sub rax, rax
  EXPECT_EQ(uops("30 c0"), "alu rax > rax flags");        // xor al, al: keeps the rest
  EXPECT_EQ(uops("31 d8"), "alu rax rbx > rax flags");    // xor eax, ebx
  EXPECT_EQ(uops("19 c0"), "alu rax flags > rax flags");  // sbb eax, eax
  EXPECT_EQ(uops("66 0f ef c0"), "vector > v0");          // pxor xmm0, xmm0
  EXPECT_EQ(uops("0f 57 c9"), "vector > v1");             // xorps xmm1, xmm1
  EXPECT_EQ(uops("c5 f5 ef c1"), "vector > v0");          // vpxor ymm0, ymm1, ymm1
  EXPECT_EQ(uops("c5 f5 ef c2"), "vector v1 v2 > v0");    // vpxor ymm0, ymm1, ymm2
}

TEST(Decoder, TheStackPointerIsNoChain) {
  EXPECT_EQ(uops("53"), "store rsp rbx");                                // push rbx
  EXPECT_EQ(uops("ff 37"), "load rdi > loaded; store rsp loaded");       // push [rdi]
  EXPECT_EQ(uops("5b"), "load rsp > rbx");                               // pop rbx
  EXPECT_EQ(uops("8f 07"), "load rsp > loaded; store rdi loaded");       // pop [rdi]
  EXPECT_EQ(uops("5c"), "load rsp > rsp");                               // pop rsp
  EXPECT_EQ(uops("9c"), "microcode flags > result; store rsp result");   // pushfq
  EXPECT_EQ(uops("9d"), "load rsp > loaded; microcode loaded > flags");  // popfq
  EXPECT_EQ(uops("c9"), "alu rbp > rsp; load rbp > rbp");                // leave
  EXPECT_EQ(uops("48 83 ec 28"), "alu rsp > rsp flags");                 // sub rsp, 0x28
}

TEST(Decoder, Branches) {
  const auto end_of = [](const std::string& hex) { return decode({hex}).end; };
  EXPECT_EQ(uops("75 10"), "branch flags");
  EXPECT_EQ(end_of("75 10"), BlockEnd::kConditional);
  EXPECT_EQ(uops("0f 84 00 01 00 00"), "branch flags");
  EXPECT_EQ(uops("e3 10"), "branch rcx");  // jrcxz
  EXPECT_EQ(end_of("e3 10"), BlockEnd::kConditional);
  EXPECT_EQ(uops("e2 10"), "alu rcx > rcx; branch rcx");  // loop
  EXPECT_EQ(end_of("e2 10"), BlockEnd::kConditional);
  EXPECT_EQ(uops("eb 10"), "branch");
  EXPECT_EQ(end_of("eb 10"), BlockEnd::kJump);
  EXPECT_EQ(uops("ff e0"), "branch rax");
  EXPECT_EQ(end_of("ff e0"), BlockEnd::kIndirectJump);
  EXPECT_EQ(uops("ff 24 d8"), "load rax rbx > loaded; +branch loaded");      // jmp [rax+rbx*8]
  EXPECT_EQ(uops("f2 ff 25 00 10 00 00"), "load > loaded; +branch loaded");  // bnd jmp [rip+0x1000], as in a PLT
  EXPECT_EQ(end_of("f2 ff 25 00 10 00 00"), BlockEnd::kIndirectJump);
  EXPECT_EQ(uops("e8 00 00 00 00"), "store rsp; branch");
  EXPECT_EQ(end_of("e8 00 00 00 00"), BlockEnd::kCall);
  EXPECT_EQ(uops("ff d0"), "store rsp; branch rax");
  EXPECT_EQ(end_of("ff d0"), BlockEnd::kIndirectCall);
  EXPECT_EQ(uops("ff 10"), "load rax > loaded; store rsp; branch loaded");
  EXPECT_EQ(uops("c3"), "load rsp > loaded; +branch loaded");
  EXPECT_EQ(end_of("c3"), BlockEnd::kReturn);
  EXPECT_EQ(end_of("f3 c3"), BlockEnd::kReturn);
  EXPECT_EQ(end_of("0f 05"), BlockEnd::kSystemCall);
  EXPECT_EQ(uops("0f 05"), "nop");
  EXPECT_EQ(end_of("48 89 d8"), BlockEnd::kFallThrough);
  EXPECT_EQ(decode({"75 10", "90"}).end, BlockEnd::kFallThrough);  // only the last one counts
}

TEST(Decoder, ComparesAndBranchesAreOne) {
  EXPECT_EQ(uops_of_all({"48 39 d8", "75 10"}), "branch rax rbx > flags");  // cmp rax, rbx; jne
  EXPECT_EQ(uops_of_all({"48 85 c0", "74 10"}), "branch rax > flags");      // test rax, rax; je
  EXPECT_EQ(uops_of_all({"48 ff c8", "75 10"}), "branch rax > rax flags");  // dec rax; jne
  EXPECT_EQ(uops_of_all({"48 3b 07", "75 10"}),
            "load rdi > loaded; +branch loaded rax > flags");  // cmp rax, [rdi]; jne
  EXPECT_EQ(uops_of_all({"48 01 07", "75 10"}),                // add [rdi], rax; jne
            "load rdi > loaded; +alu loaded rax > result flags; store rdi result; branch flags");
  EXPECT_EQ(uops_of_all({"48 39 d8", "90", "75 10"}), "alu rax rbx > flags; nop; branch flags");
  EXPECT_EQ(uops_of_all({"48 39 d8", "e3 10"}), "alu rax rbx > flags; branch rcx");
  EXPECT_EQ(decode({"48 39 d8", "75 10"}).instructions, 2);
}

TEST(Decoder, LockedInstructions) {
  EXPECT_EQ(uops("f0 01 07"),  // lock add [rdi], eax
            "!load rdi > loaded; +!alu loaded rax > result flags; !store rdi result");
  EXPECT_EQ(uops("f0 48 0f b1 37"),  // lock cmpxchg [rdi], rsi
            "!load rdi > loaded; +!alu loaded rsi rax > result flags; !alu result > rax; !store rdi result");
  EXPECT_EQ(uops("48 87 07"),  // xchg [rdi], rax: without the prefix
            "!load rdi > loaded; +!alu loaded rax > result rax; !store rdi result");
  EXPECT_EQ(uops("f0 48 0f c1 07"),  // lock xadd [rdi], rax
            "!load rdi > loaded; +!alu loaded rax > result rax; !alu result > flags; !store rdi result");
  const Block block = decode({"90", "f0 83 0c 24 00", "90"});  // lock or dword [rsp], 0
  EXPECT_TRUE(block.atomic);
  EXPECT_FALSE(block.uops.front().locked);
  EXPECT_FALSE(block.uops.back().locked);
  EXPECT_EQ(text_of(decode({"f0 48 0f c7 0f"})).substr(0, 5), "!load");  // lock cmpxchg16b [rdi]
  EXPECT_FALSE(decode({"48 0f b1 37"}).atomic);                          // cmpxchg [rdi], rsi
}

TEST(Decoder, StringInstructions) {
  EXPECT_EQ(uops("f3 a4"), "load rsi > loaded; store rdi loaded; alu rsi rdi > rsi rdi");  // rep movsb
  EXPECT_EQ(uops("f3 48 ab"), "store rdi rax; alu rdi > rdi");                             // rep stosq
  EXPECT_EQ(uops("48 ab"), "store rdi rax; alu rdi > rdi");                                // stosq
  EXPECT_EQ(uops("f2 ae"), "load rdi > loaded; +alu rax loaded > flags; alu rdi > rdi");   // repne scasb
  EXPECT_EQ(uops("f3 a6"),                                                                 // repe cmpsb
            "load rsi > result; load rdi > loaded; +alu result loaded > flags; alu rsi rdi > rsi rdi");
  EXPECT_EQ(decode({"f3 a4"}).end, BlockEnd::kOther);
  EXPECT_EQ(decode({"48 ab"}).end, BlockEnd::kFallThrough);
  EXPECT_EQ(uops("f2 0f 10 07"), "load rdi > v0");  // movsd xmm0, [rdi]: no string
}

TEST(Decoder, HintsAreNops) {
  for (const char* hex : {"90", "66 90", "0f 1f 00", "66 0f 1f 84 00 00 00 00 00", "f3 0f 1e fa",
                          "0f 1f 84 00 78 56 34 12", "0f ae f8", "c5 f8 77", "f3 48 0f 1e c8"}) {
    EXPECT_EQ(uops(hex), "nop") << hex;
  }
  EXPECT_EQ(uops("0f 18 0f"), "nop rdi");  // a prefetch
  EXPECT_EQ(uops("f3 90"), "pause");
  EXPECT_EQ(uops("0f ae f0"), "fence");  // mfence
  EXPECT_EQ(uops("0f ae e8"), "fence");  // lfence
  EXPECT_EQ(uops("0f a2").substr(0, 9), "microcode");
  EXPECT_EQ(uops("0f 31"), "microcode > rax rdx");  // rdtsc
}

TEST(Decoder, Vectors) {
  EXPECT_EQ(uops("0f 10 07"), "load rdi > v0");          // movups xmm0, [rdi]
  EXPECT_EQ(uops("0f 11 07"), "store rdi v0");           // movups [rdi], xmm0
  EXPECT_EQ(uops("c5 fe 6f 07"), "load rdi > v0");       // vmovdqu ymm0, [rdi]
  EXPECT_EQ(uops("c5 fe 7f 07"), "store rdi v0");        // vmovdqu [rdi], ymm0
  EXPECT_EQ(uops("0f 28 c1"), "vector v1 > v0");         // movaps xmm0, xmm1
  EXPECT_EQ(uops("66 48 0f 7e c0"), "vector v0 > rax");  // movq rax, xmm0
  EXPECT_EQ(uops("f2 0f 58 c1"), "fp_add v0 v1 > v0");   // addsd xmm0, xmm1
  EXPECT_EQ(uops("f2 0f 58 07"), "load rdi > loaded; +fp_add loaded v0 > v0");
  EXPECT_EQ(uops("0f 59 c1"), "fp_mul v0 v1 > v0");                              // mulps
  EXPECT_EQ(uops("f2 0f 5e c1"), "fp_div v0 v1 > v0");                           // divsd
  EXPECT_EQ(uops("f2 0f 51 c1"), "fp_div v1 > v0");                              // sqrtsd
  EXPECT_EQ(uops("c5 f5 58 c2"), "fp_add v1 v2 > v0");                           // vaddpd ymm0, ymm1, ymm2
  EXPECT_EQ(uops("c4 e2 f5 a8 c2"), "fp_mul v0 v1 v2 > v0");                     // vfmadd213pd ymm0, ymm1, ymm2
  EXPECT_EQ(uops("66 0f 74 07"), "load rdi > loaded; +vector loaded v0 > v0");   // pcmpeqb xmm0, [rdi]
  EXPECT_EQ(uops("66 0f d7 c0"), "vector v0 > rax");                             // pmovmskb eax, xmm0
  EXPECT_EQ(uops("0f 16 07"), "load rdi > loaded; +vector loaded v0 > v0");      // movhps xmm0, [rdi]
  EXPECT_EQ(uops("c4 e3 7d 39 07 01"), "vector v0 > result; store rdi result");  // vextracti128 [rdi], ymm0, 1
  EXPECT_EQ(uops("66 0f 2e c1"), "fp_add v0 v1 > flags");                        // ucomisd xmm0, xmm1
}

TEST(Decoder, X87) {
  EXPECT_EQ(uops("dd 07"), "load rdi > x87");                               // fld qword [rdi]
  EXPECT_EQ(uops("dd 1f"), "store rdi x87");                                // fstp qword [rdi]
  EXPECT_EQ(uops("dc 07"), "load rdi > loaded; +fp_add loaded x87 > x87");  // fadd qword [rdi]
  EXPECT_EQ(uops("de c9"), "fp_mul x87 > x87");                             // fmulp
  EXPECT_EQ(uops("d9 fe").substr(0, 9), "microcode");                       // fsin
}

// Where versions of Capstone differ.
TEST(Decoder, WhateverCapstoneSays) {
  EXPECT_EQ(uops("91"), "alu rax rcx > rax rcx");                                  // xchg ecx, eax
  EXPECT_EQ(uops("48 87 cb"), "alu rcx rbx > rcx rbx");                            // xchg rbx, rcx
  EXPECT_EQ(uops("0f 44 07"), "load rdi > loaded; +alu loaded rax flags > rax");   // cmove eax, [rdi]
  EXPECT_EQ(uops("84 07"), "load rdi > loaded; +alu loaded rax > flags");          // test [rdi], al
  EXPECT_EQ(uops("f7 07 01 00 00 00"), "load rdi > loaded; +alu loaded > flags");  // test dword [rdi], 1
  EXPECT_EQ(uops("f7 0f 01 00 00 00"), "load rdi > loaded; +alu loaded > flags");  // its other form
  EXPECT_EQ(uops("0f 01 ee"), "microcode rcx > rax rdx");                          // rdpkru
  EXPECT_EQ(uops("0f 01 ef"), "microcode rax rcx rdx");                            // wrpkru
}

TEST(Decoder, WhatIsUnknownIsOneOperation) {
  EXPECT_EQ(uops("06"), "alu");  // no instruction in 64-bit mode
  EXPECT_EQ(uops_of_all({"06", "48 89 d8"}), "alu; alu rbx > rax");
}

// Any bytes at all: nothing breaks, and registers are in range.
TEST(Decoder, AnyBytes) {
  const std::unique_ptr<Decoder> decoder = make_x86_decoder();
  ASSERT_NE(decoder, nullptr);
  uint64_t random = 1;
  for (unsigned run = 0; run < 200000; ++run) {
    Bytes bytes(1 + run % 15);
    for (uint8_t& byte : bytes) {
      random = random * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<uint8_t>(random >> 56);
    }
    if (run % 2 == 0) bytes[0] = run % 4 == 0 ? 0x0f : 0xc5;
    const Instruction instruction{0x1000, bytes};
    const Block block = decoder->decode({&instruction, 1});
    ASSERT_FALSE(block.uops.empty());
    for (const Uop& uop : block.uops) {
      for (const Register reg : uop.sources) ASSERT_LT(reg, kRegisters);
      for (const Register reg : uop.destinations) ASSERT_LE(reg, kNowhere);
    }
  }
}

// --- one instruction a block

class AloneDecoderTest : public testing::Test {
 protected:
  // From an address on, of the code that was given.
  std::span<const uint8_t> code_from(Address address) const {
    return std::span(code_).subspan(std::min<size_t>(address - kStart, code_.size()));
  }
  Block decode(Address from, size_t bytes) {
    const Instruction one{from, code_from(from).first(bytes)};
    return decoder_->decode({&one, 1});
  }

  static constexpr Address kStart = 0x1000;
  // cmp rax, [rbx]; jne; cmp rax, rcx; mov rax, rcx
  const Bytes code_ = bytes_of("48 3b 03 75 fb 48 39 c8 48 89 c8");
  std::unique_ptr<Decoder> decoder_ =
      make_alone_decoder(make_x86_decoder(), [this](Address a) { return code_from(a); });
};

TEST_F(AloneDecoderTest, ACompareLeavesItsMicroOpToTheBranchAfterIt) {
  EXPECT_EQ(text_of(decode(kStart, 3)), "load rbx > loaded");
  const Block branch = decode(kStart + 3, 2);
  EXPECT_EQ(text_of(branch), "+branch loaded rax > flags");
  EXPECT_EQ(branch.end, BlockEnd::kConditional);
  EXPECT_EQ(branch.start, kStart + 3);
  EXPECT_EQ(branch.fall_through, kStart + 5);
  EXPECT_EQ(branch.uops.front().instruction, 0);
}

TEST_F(AloneDecoderTest, OtherInstructionsAreWhatTheyAre) {
  EXPECT_EQ(text_of(decode(kStart + 3, 2)), "branch flags");  // its compare has not been seen
  EXPECT_EQ(text_of(decode(kStart + 5, 3)), "alu rax rcx > flags");
  EXPECT_EQ(text_of(decode(kStart + 8, 3)), "alu rcx > rax");
}

}  // namespace
}  // namespace annex::sim
