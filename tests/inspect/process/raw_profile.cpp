// raw_profile_of(), for the test (attach_test.py):
//
//   raw-profile PID SECONDS
//   raw-profile PID forge ROOM ADDRESS:ASKED:SIZE...
//                             first writes a profile of our own into the process, whose own may be off: records in 64
//                             KiB of its memory at ROOM, and a sample for each of these blocks
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "message.h"
#include "process/attach.h"
#include "process/target.h"

namespace {

using namespace annex::inspect;
using annex::profile::Label;
using annex::profile::Module;
using annex::profile::Sample;
using annex::profile::Site;
using annex::profile::Tables;

constexpr uint64_t kModuleAt = 0, kTextAt = 1024, kLabelAt = 2048, kSiteAt = 3072, kSamplesAt = 4096;

uint64_t address(const char* text) { return strtoull(text, nullptr, 16); }

void forge(const Target& target, uint64_t room, char** blocks, int count) {
  const auto put = [&](uint64_t at, const void* from, size_t bytes) { target.memory.write(at, from, bytes); };
  alignas(8) char bytes[512] = {};
  auto* const module = reinterpret_cast<Module*>(bytes);
  module->number = 1;
  module->build_id_bytes = 2;
  module->build_id[0] = 0xab;
  module->build_id[1] = 0x01;
  module->start = 0x10000;
  module->end = 0x20000;
  module->offset = 0x1000;
  strcpy(module->path, "/a b\\c\nd");
  put(room + kModuleAt, bytes, sizeof bytes);

  put(room + kTextAt, "key\0some value", sizeof "key\0some value");
  Label label = {nullptr, 1, reinterpret_cast<char*>(room + kTextAt), reinterpret_cast<char*>(room + kTextAt + 4)};
  put(room + kLabelAt, &label, sizeof label);

  memset(bytes, 0, sizeof bytes);
  auto* const site = reinterpret_cast<Site*>(bytes);
  site->number = 1;
  site->labels = 1;
  site->samples = 3;
  site->objects = 30.5;
  site->bytes = 30500;
  site->freed = 10;
  site->lifetimes[2] = 10;
  site->depth = 2;
  site->frames[0] = 0x10010;
  site->frames[1] = 0x777;
  const uint16_t modules[] = {1, 0};
  memcpy(site->frames + 2, modules, sizeof modules);
  put(room + kSiteAt, bytes, sizeof bytes);

  std::vector<Sample> samples(1);  // index 0 is none's
  for (int i = 0; i < count; ++i) {
    Sample sample = {};
    sscanf(blocks[i], "%lx:%lu:%lu", &sample.block, &sample.asked, &sample.size);
    sample.site = reinterpret_cast<Site*>(room + kSiteAt);
    sample.weight = 1.25;
    sample.thread = 77;
    samples.push_back(sample);
  }
  samples.push_back(samples.back());
  samples.back().site = nullptr;  // one that is being written
  samples.push_back({});          // a place that is empty again
  put(room + kSamplesAt, samples.data(), samples.size() * sizeof(Sample));

  const uint64_t tables = number(target.annex.profile);
  const auto set = [&](size_t offset, auto value) { put(tables + offset, &value, sizeof value); };
  set(offsetof(Tables, began_unix_ms), uint64_t{1234});
  set(offsetof(Tables, modules), room + kModuleAt);
  set(offsetof(Tables, labels), room + kLabelAt);
  set(offsetof(Tables, sites), room + kSiteAt);
  set(offsetof(Tables, chunks), room + kSamplesAt);
  set(offsetof(Tables, places), static_cast<uint32_t>(samples.size()));
  set(offsetof(Tables, rate), uint64_t{4096});
  set(offsetof(Tables, last_rate), uint64_t{4096});
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return kUsage;
  try {
    const pid_t process = atoi(arguments[1]);
    if (strcmp(arguments[2], "forge") == 0)
      forge(open_target(process), address(arguments[3]), arguments + 4, count - 4);
    fputs(raw_profile_of(process, atof(arguments[2])).c_str(), stdout);
    return kDone;
  } catch (const Failure& failure) {
    say("{}", failure.what());
    return failure.status;
  }
}
