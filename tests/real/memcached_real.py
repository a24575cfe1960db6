"""memcached with four threads, under several clients at once; each reads back what it wrote."""

import hashlib
import os
import socket
import threading

from harness import Failure, answers, free_port, main

CLIENTS, ROUNDS = 6, 1500


def talk(port, number, results):
    """One client's conversation: sets, gets, appends, counts, deletes; its replies are folded into a checksum."""
    total = hashlib.sha256()
    with socket.create_connection(("127.0.0.1", port), 30) as connection, connection.makefile("rb") as stream:

        def ask(command, data=None):
            text = command.encode() + b"\r\n" + (data + b"\r\n" if data is not None else b"")
            connection.sendall(text)

        def value():
            line = stream.readline()
            if line == b"END\r\n":
                return None
            data = stream.read(int(line.split()[3]) + 2)[:-2]
            stream.readline()
            return data

        ask(f"set count{number} 0 0 1", b"0")
        stream.readline()
        for n in range(ROUNDS):
            key, data = f"k{number}:{n % 400}", bytes([97 + n % 26]) * (n * 7919 % 4000)
            ask(f"set {key} 0 0 {len(data)}", data)
            total.update(stream.readline())
            ask(f"append {key} 0 0 4", b"tail")
            total.update(stream.readline())
            ask(f"incr count{number} {n}")
            total.update(stream.readline())
            ask(f"get {key}")
            total.update(value() or b"none")
            if n % 5 == 0:
                ask(f"delete k{number}:{(n * 3) % 400}")
                total.update(stream.readline())
        for n in range(400):
            ask(f"get k{number}:{n}")
            total.update(value() or b"none")
    results[number] = total.hexdigest()


def work(on):
    port = free_port()
    command = ["memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, "-t", 4, "-m", 128, "-o", "hashpower=13"]
    if os.getuid() == 0:
        command += ["-u", "root"]
    results = {}
    with on.server(command, answers(port)):
        clients = [threading.Thread(target=talk, args=(port, n, results)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        if len(results) < CLIENTS:
            raise Failure(f"{CLIENTS - len(results)} clients lost their connection")
    return {f"client {number}": sum for number, sum in results.items()}


main(work, ["memcached"])
