#!/bin/bash
# speedscope's importer of pprof's format keeps one function of each location, the outermost: what a function allocated
# (or spent) that was inlined into another is shown as the other's own, and the inlined one is nowhere, not in a search
# either. pprof itself shows all. Nothing is said of it.
#
# Guessed first: profile.proto says that a location's lines are the inlined functions, innermost first, so speedscope
# would show both, as pprof does, or else the innermost, whose sample it is. Seen with speedscope 1.25.0: a location
# whose lines are "inlined" and "caller" is one frame, "caller".
#
# Needs node, npm, python3, chromium, and the network once. Fails where the behaviour is no longer this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --no-audit --no-fund --ignore-scripts --silent speedscope@1.25.0 puppeteer-core@24.10.0
release=node_modules/speedscope/dist/release
# A profile of one sample, 100 bytes: [inlined into caller] called by main.
python3 - "$release/profile.pb.gz" <<'PYTHON'
import gzip
import sys


def number(field, value):
    return bytes([field << 3, value])


def message(field, contents):
    return bytes([field << 3 | 2, len(contents)]) + contents


texts = ["", "space", "bytes", "inlined", "caller", "main"]
profile = message(1, number(1, 1) + number(2, 2))
profile += message(2, message(1, bytes([1, 2])) + message(2, bytes([100])))
profile += message(4, number(1, 1) + message(4, number(1, 1)) + message(4, number(1, 2)))  # inlined, then caller
profile += message(4, number(1, 2) + message(4, number(1, 3)))  # main
for function in (1, 2, 3):
    profile += message(5, number(1, function) + number(2, function + 2))
for text in texts:
    profile += message(6, text.encode())
open(sys.argv[1], "wb").write(gzip.compress(profile))
PYTHON
cat >look.js <<'JS'
const fs = require("fs");
const http = require("http");
const puppeteer = require("puppeteer-core");

async function main() {
  const [release, browser] = process.argv.slice(2);
  const server = http.createServer((request, response) => {
    const name = request.url.split("?")[0].split("/").pop();
    const types = { html: "text/html", js: "text/javascript", css: "text/css" };
    fs.readFile(`${release}/${name}`, (error, data) => {
      response.writeHead(error ? 404 : 200, { "Content-Type": types[name.split(".").pop()] ?? "application/octet-stream" });
      response.end(data);
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const home = `http://127.0.0.1:${server.address().port}`;
  const chromium = await puppeteer.launch({ executablePath: browser, args: ["--no-sandbox", "--disable-gpu"] });
  const page = await chromium.newPage();
  await page.goto(`${home}/index.html#profileURL=${home}/profile.pb.gz`);
  let text = "";
  for (let i = 0; i < 100 && !text.includes("main"); ++i) {
    await new Promise((later) => setTimeout(later, 200));
    await page.keyboard.press("3"); // the table of functions
    text = await page.evaluate(() => document.body.innerText);
  }
  await chromium.close();
  server.close();
  const rows = text.slice(text.indexOf("Symbol Name") + 11).replace(/\s*\n\s*/g, " ").trim();
  console.log("total, self, function:", rows);
  if (!/100 B \(100%\) 100 B \(100%\) caller/.test(rows) || !rows.includes("main") || rows.includes("inlined")) {
    throw new Error("it has changed");
  }
}
main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
JS
echo "speedscope $(node -p 'require("speedscope/package.json").version')"
node look.js "$release" "$(command -v chromium || command -v google-chrome)"
