// Reads, writes and packs whole files: see files.h.
#include "profile/files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "message.h"

namespace annex::inspect {
namespace {

Failure failed(const std::string& path, int error) { return {kFailed, path + ": " + strerror(error)}; }

struct Close {
  void operator()(FILE* file) const { fclose(file); }
};

void write_all(FILE* file, std::string_view contents, const std::string& name) {
  if (fwrite(contents.data(), 1, contents.size(), file) != contents.size() || fflush(file) != 0) {
    throw failed(name, errno);
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  const std::unique_ptr<FILE, Close> file(fopen(path.c_str(), "re"));
  if (!file) throw failed(path, errno);
  std::string contents;
  char part[1 << 16];
  while (const size_t length = fread(part, 1, sizeof part, file.get())) contents.append(part, length);
  if (ferror(file.get())) throw failed(path, errno);
  return contents;
}

void write_file(const std::string& path, std::string_view contents) {
  if (path == "-") {
    write_all(stdout, contents, "standard output");
    return;
  }
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) throw failed(path, errno);
  struct stat what {};
  const bool regular = fstat(fileno(file), &what) == 0 && S_ISREG(what.st_mode);
  const bool written = fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  const int write_error = errno;
  const bool closed = fclose(file) == 0;
  if (written && closed) return;
  const int error = written ? errno : write_error;
  if (regular) unlink(path.c_str());
  throw failed(path, error);
}

void finish_output() { write_all(stdout, "", "standard output"); }

std::string gzipped(std::string_view contents) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Failure(kFailed, "no memory to pack the profile");
  }
  std::string packed(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = contents.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw Failure(kFailed, "the profile can't be packed");
  return packed;
}

}  // namespace annex::inspect
