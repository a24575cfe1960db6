"""A small client of the redis protocol: one connection, replies as Python values."""

import socket


class ReplyError(Exception):
    pass


def encode(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words])


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.stream = self.socket.makefile("rb")

    def close(self):
        self.stream.close()
        self.socket.close()

    def __call__(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        """Sends all the commands, then returns all the replies."""
        self.socket.sendall(b"".join(encode(words) for words in commands))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ReplyError("the connection is closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ReplyError(rest.decode())
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        count = int(rest)
        if count < 0:
            return None
        if kind == b"$":
            return self.stream.read(count + 2)[:-2]
        return [self.reply() for _ in range(count)]
