// Whole files: read, written, and packed. All throw Failure with the file's name and what is wrong.
#pragma once

#include <string>
#include <string_view>

namespace annex::inspect {

std::string read_file(const std::string& path);

// To standard output where the path is "-". A regular file that could not be written whole is removed.
void write_file(const std::string& path, std::string_view contents);

// What text was printed to standard output has arrived there.
void finish_output();

std::string gzipped(std::string_view contents);

}  // namespace annex::inspect
