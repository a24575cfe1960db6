"""nginx: two workers serve files, plain, compressed and proxied to themselves, and rewrites; with a reload between."""

import hashlib
import http.client
import os
import signal
import threading
import time
from pathlib import Path

from harness import Failure, answers, free_port, main

CONFIGURATION = """
daemon off; worker_processes 2; error_log {dir}/error.log; pid {dir}/nginx.pid; {user}
events {{ worker_connections 256; }}
http {{
  access_log {dir}/access.log; default_type text/plain; sendfile off;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  gzip on; gzip_types text/plain; gzip_min_length 100; gzip_proxied any; gzip_http_version 1.0;
  server {{
    listen 127.0.0.1:{port};
    root {dir}/files;
    location / {{ etag off; }}
    location /proxied/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_set_header X-Note "$request_uri $remote_addr"; }}
    location ~ ^/rewritten/(?<name>[a-z]+)(?<number>[0-9]+)$ {{ return 200 "$name and $number from $uri\\n"; }}
    location /moved {{ return 302 /file1.txt; }}
  }}
}}
"""


def fetch_all(port, seed, results):
    """One client: a kept-alive connection, then one a request; what it got is folded into a checksum."""
    total = hashlib.sha256()
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for n in range(400):
        path = [
            f"/file{n * seed % 40}.txt",
            f"/proxied/file{n % 40}.txt",
            f"/rewritten/thing{n}",
            "/moved",
            f"/none{n}",
            "/proxied/rewritten/deep7",
        ][n % 6]
        headers = {"Accept-Encoding": "gzip"} if n % 4 == 0 else {}
        connection = kept if n % 3 else http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path + "?q=" + "x" * (n % 50 * 20), headers=headers)
        response = connection.getresponse()
        told = [
            (name, value) for name, value in response.getheaders() if name not in ("Date", "Last-Modified", "Location")
        ]
        total.update(repr((path, response.status, sorted(told))).encode())
        total.update(response.read())
        if connection is not kept:
            connection.close()
    kept.close()
    results[seed] = total.hexdigest()


def serve(port, seeds):
    results = {}
    clients = [threading.Thread(target=fetch_all, args=(port, seed, results)) for seed in seeds]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if len(results) < len(seeds):
        raise Failure(f"{len(seeds) - len(results)} of {len(seeds)} clients failed")
    return results


def workers(master):
    return [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]


def work(on):
    port = free_port()
    (on.dir / "files").mkdir()
    for n in range(40):
        (on.dir / f"files/file{n}.txt").write_text("".join(f"line {i} of {n}\n" for i in range(n * n * 5)))
    user = "user root;" if os.getuid() == 0 else ""
    (on.dir / "nginx.conf").write_text(CONFIGURATION.format(dir=on.dir, port=port, user=user))
    with on.server(["nginx", "-p", on.dir, "-c", on.dir / "nginx.conf"], answers(port), stop=signal.SIGQUIT) as master:
        results = {"before the reload": serve(port, [1, 3, 7, 11])}
        before = workers(master.pid)
        for worker in before:
            on.check_maps(worker)
        master.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while set(workers(master.pid)) & set(before):
            if time.monotonic() > deadline:
                raise Failure("the workers of before the reload do not end")
            time.sleep(0.02)
        results["after the reload"] = serve(port, [13, 17])
    alerts = [
        line for line in (on.dir / "error.log").read_text().splitlines() if "[alert]" in line or "[emerg]" in line
    ]
    results["alerts"] = "\n".join(alerts)  # a worker that died is one
    return results


main(work, ["nginx"], processes=5)
