#!/bin/bash
# pprof rewrites the names of functions that a profile already has, where a function's name and system_name are the same:
# parameters, template arguments and "(anonymous namespace)" are cut off. The mapping's has_functions, which keeps pprof
# from looking names up, changes nothing. So two functions that differ only there become one row of -top.
#
# Guessed first: a profile that says has_functions, has_filenames, has_line_numbers and has_inline_frames is shown as it
# is; a writer without mangled names puts the name into both fields. Seen with github.com/google/pprof of 5 November 2026:
# "(anonymous namespace)::load(char const*)" becomes "::load", and std::vector<int>::grow and std::vector<long>::grow are
# both "std::vector::grow". Where system_name is empty, or differs in any way, the name stays. -symbolize=none keeps it too.
#
# Needs go, and the network once. Fails where the behaviour is no longer this one.
set -euo pipefail
version=v0.0.0-20261105003125-4bf881d7fb0b
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export GOPATH=$folder/go GOFLAGS=-modcacherw PPROF_TMPDIR=$folder
cd "$folder"
go install "github.com/google/pprof@$version" 2>install.log || { cat install.log >&2; exit 1; }
cat >write.go <<'GO'
package main

import (
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/none/program",
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "space", Unit: "bytes"}}, Mapping: []*profile.Mapping{m}}
	for i, name := range []string{"(anonymous namespace)::load(char const*)", "std::vector<int>::grow()", "std::vector<long>::grow()"} {
		id := uint64(i + 1)
		f := &profile.Function{ID: id, Name: name, Filename: "a.cpp"}
		if os.Args[1] == "both" {
			f.SystemName = name
		}
		l := &profile.Location{ID: id, Mapping: m, Address: 0x1000 + id, Line: []profile.Line{{Function: f, Line: 1}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{100}})
	}
	if err := p.Write(os.Stdout); err != nil {
		panic(err)
	}
}
GO
go mod init finding 2>/dev/null
go get "github.com/google/pprof@$version" 2>/dev/null
for names in both one; do
  go run write.go $names >$names.pb.gz
  for way in "" -symbolize=none; do
    go/bin/pprof -top $way $names.pb.gz 2>/dev/null | tail -n +5 | sed -E 's/^ *([0-9]+B) .*% +/\1 /' | sort >shown
    echo "pprof ${version:7:8} ${way:-as it is}, system_name $([ $names = both ] && echo "equal to name" || echo empty):"
    sed 's/^/    /' shown
    cp shown "$names$way.shown"
  done
done
plain=$(printf '%s\n' '100B (anonymous namespace)::load(char const*)' '100B std::vector<int>::grow()' '100B std::vector<long>::grow()')
changed=$(printf '%s\n' '100B ::load' '200B std::vector::grow')
for file in one.shown one-symbolize=none.shown both-symbolize=none.shown; do
  [ "$(grep '^[0-9]*B ' $file)" = "$plain" ] || { echo "$file has changed"; exit 1; }
done
[ "$(grep '^[0-9]*B ' both.shown)" = "$changed" ] || { echo "both.shown has changed"; exit 1; }
