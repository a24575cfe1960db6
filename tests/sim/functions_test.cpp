#include "guest/functions.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>

namespace annex::sim {
namespace {

TEST(Functions, OfTheFamilyByName) {
  EXPECT_EQ(function_named("malloc"), Function::kAllocate);
  EXPECT_EQ(function_named("free"), Function::kFree);
  EXPECT_EQ(function_named("realloc"), Function::kReallocate);
  EXPECT_EQ(function_named("malloc_usable_size"), Function::kOther);
  EXPECT_EQ(function_named("_Znwm"), Function::kAllocate);
  EXPECT_EQ(function_named("_ZnwmRKSt9nothrow_t"), Function::kAllocate);
  EXPECT_EQ(function_named("_ZnamSt11align_val_tRKSt9nothrow_t"), Function::kAlign);
  EXPECT_EQ(function_named("aligned_alloc"), Function::kAlign);
  EXPECT_EQ(function_named("reallocarray"), Function::kReallocateArray);
  EXPECT_EQ(function_named("_ZdlPvm"), Function::kFree);
  EXPECT_EQ(function_named("mallocate"), Function::kNone);
  EXPECT_EQ(function_named("_ZN3fooEv"), Function::kNone);
}

// libc as it is mapped into this very process.
TEST(Functions, OfAMappedLibrary) {
  struct Found {
    Functions functions;
    Address malloc_at = 0;
  } found;
  dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t, void* data) {
        if (std::string_view(info->dlpi_name).find("/libc.so") == std::string_view::npos) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const Address page = 4095;
          static_cast<Found*>(data)->functions.add_file(info->dlpi_name, info->dlpi_addr + (segment.p_vaddr & ~page),
                                                        segment.p_offset & ~page);
        }
        return 1;
      },
      &found);
  ASSERT_EQ(found.functions.files().size(), 1u);
  void* libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(found.functions.at(reinterpret_cast<Address>(dlsym(libc, "malloc"))), Function::kAllocate);
  EXPECT_EQ(found.functions.at(reinterpret_cast<Address>(dlsym(libc, "free"))), Function::kFree);
  EXPECT_EQ(found.functions.at(reinterpret_cast<Address>(dlsym(libc, "printf"))), Function::kNone);
}

TEST(Functions, WhatIsNoProgramIsPassedOver) {
  Functions functions;
  functions.add_file("/etc/passwd", 0x1000, 0);
  functions.add_file("/nowhere", 0x1000, 0);
  functions.add_file("/dev/null", 0x1000, 0);
  EXPECT_TRUE(functions.files().empty());
}

}  // namespace
}  // namespace annex::sim
