"""A page in headless Chromium, over the DevTools protocol: what it says on the console, what it asks of the network,
what a script finds in it, and how it looks."""

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60


def find() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """Opens one page and keeps what happens. Commands go into the browser's descriptor 3, answers come from its 4."""

    def __init__(self, address: str, profile: Path, width: int = 1280, dark: bool = False):
        self.console: list[str] = []  # every message of the console, and every error that no script caught
        self.requests: list[str] = []  # addresses that the page asked for, its own among them
        self._number = 0
        self._messages: queue.Queue[dict] = queue.Queue()
        self._events: list[str] = []
        self._start(profile)
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self._call(f"{domain}.enable")
            self._call(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
            )
            scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
            self._call("Emulation.setEmulatedMedia", features=scheme)
            self._call("Page.navigate", url=address)
            self._wait_for("Page.loadEventFired")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_error) -> None:
        self.close()

    def evaluate(self, script: str):
        """What the script's last expression is, as JSON has it."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", answer))
        return answer["result"].get("value")

    def screenshot(self, target: Path, whole: bool = False) -> None:
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, target: Path) -> None:
        answer = self._call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        target.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        os.close(self._to)
        self._browser.terminate()
        try:
            self._browser.wait(10)
        except subprocess.TimeoutExpired:
            self._browser.kill()
            self._browser.wait()
        self._reader.join(10)

    def _start(self, profile: Path) -> None:
        child_reads, self._to = os.pipe()
        self._from, child_writes = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-pipe", "--disable-background-networking", f"--user-data-dir={profile}"]
        # A shell puts the pipes where the browser looks for them, whatever numbers they have here.
        script = f'exec "$@" 3<&{child_reads} 4>&{child_writes}'
        self._browser = subprocess.Popen(
            ["bash", "-c", script, "bash", find(), *options],
            pass_fds=(child_reads, child_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_reads)
        os.close(child_writes)
        self._session = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Messages are JSON, each with a zero byte after it."""
        rest = b""
        with open(self._from, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                *whole, rest = (rest + chunk).split(b"\0")
                for message in whole:
                    self._messages.put(json.loads(message))
        self._messages.put({"gone": True})

    def _call(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        answer = self._next(lambda one: one.get("id") == self._number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _wait_for(self, event: str) -> None:
        if event not in self._events:
            self._next(lambda one: one.get("method") == event)

    def _next(self, wanted) -> dict:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                message = self._messages.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError("the browser does not answer") from None
            if "gone" in message:
                raise AssertionError("the browser has ended")
            self._note(message)
            if wanted(message):
                return message

    def _note(self, message: dict) -> None:
        method, what = message.get("method"), message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value")) for one in what["args"]))
        elif method == "Log.entryAdded":
            self.console.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
