"""JSON-RPC on standard input and output: one message a line.

File descriptor 1 belongs to the protocol alone: it is moved away at the start, and whatever the process prints goes
to stderr. One thread reads, one writes, so that a client which reads slowly holds up neither its own cancellations
nor a shutdown. End of input is a half-close: what was admitted is still answered (ruling 25).
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from outcrop.errors import EXIT_INTERRUPTED, EXIT_IO, EXIT_OK
from outcrop.servers.jsonrpc import PARSE_ERROR, Connection, Handler, RpcError, Slots, error_frame

FRAME_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest line that is read."""
PENDING_LIMIT = 16 * 1024 * 1024
"""Bytes of answers that wait for the client to read; above it nothing more is read from the client either."""
GRACE = 5.0
"""Seconds that running calls are given to answer at a shutdown."""
LAST_GRACE = 1.0
"""Seconds that they are given to end when no answer has a reader any more."""
_CHUNK = 64 * 1024
_DRAIN_POLL_MS = 10


class Lines:
    """Cuts a byte stream into lines, holding at most `limit` bytes whatever comes."""

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self.limit = limit
        self._held = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that `data` completes, blank ones left out; None, once, for a line that is too long."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._take(data[start:end])
            if not self._skipping:
                yield from self.finish()
            self._skipping = False
            start = end + 1
        yield from self._take(data[start:])

    def finish(self) -> Iterator[bytes]:
        """The line that is held: at the end of the stream it needs no line end."""
        line = bytes(self._held).strip(b" \t\r")
        self._held.clear()
        if line:
            yield line

    def _take(self, piece: bytes) -> Iterator[None]:
        if self._skipping:
            return
        if len(self._held) + len(piece) > self.limit:
            self._held.clear()
            self._skipping = True
            yield None
        else:
            self._held += piece


class Output:
    """Writes frames in the order in which they come, on a thread of its own, started with the first."""

    def __init__(self, fd: int) -> None:
        self.broken = False
        self._fd = fd
        self._frames: deque[bytes] = deque()
        self._pending = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def send(self, frame: bytes) -> None:
        """Queue one frame; waits while too much is queued. Frames for a client that is gone are dropped."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="output", daemon=True)
                self._thread.start()
            while self._pending > PENDING_LIMIT and not self.broken:
                self._changed.wait()
            if not self.broken:
                self._frames.append(frame)
                self._pending += len(frame) + 1
                self._changed.notify_all()

    def idle(self) -> bool:
        return not self._pending

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._frames:
                    self._changed.wait()
                frames = b"\n".join([*self._frames, b""])
                self._frames.clear()
            try:
                self._write_all(frames)
            except OSError:
                self.broken = True
            with self._changed:
                self._pending = 0 if self.broken else self._pending - len(frames)
                self._changed.notify_all()
            if self.broken:
                return

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def serve(handler: Handler, slots: Slots, ignores_other_versions: bool = False) -> int:
    """Serve the client at stdin and stdout until it leaves or a signal comes; the exit code. Main thread only."""
    input_fd, output_fd = _take_descriptors()
    server = _Server(handler, slots, input_fd, output_fd)
    server.connection.ignores_other_versions = ignores_other_versions
    return server.run()


class _Server:
    def __init__(self, handler: Handler, slots: Slots, input_fd: int, output_fd: int) -> None:
        self._slots = slots
        self._input_fd = input_fd
        self._output_fd = output_fd
        self._output = Output(output_fd)
        self.connection = Connection(handler, slots, self._output.send)
        self._lines = Lines()
        self._signal: int | None = None
        self._wake_fd, self._woken_fd = os.pipe()

    def run(self) -> int:
        self._listen_to_signals()
        self._read(self._poll(self._input_fd, self._wake_fd))
        if self._signal is not None:
            self.connection.stop(answer=True)
        if not self._drain(None if self._signal is None else GRACE):
            # The client is gone, or nobody reads: no answer has a reader any more.
            self.connection.stop(answer=False)
            if not self._slots.close(LAST_GRACE):
                _leave(EXIT_IO)
        if self._signal == signal.SIGINT:
            return EXIT_INTERRUPTED
        return EXIT_IO if self._output.broken else EXIT_OK

    def _read(self, poll: Any) -> None:
        """Take frames until the input ends, the output breaks or a signal comes."""
        while self._signal is None and not self._output.broken:
            if not self._ready(poll):
                continue
            try:
                data = os.read(self._input_fd, _CHUNK)
            except OSError:
                data = b""
            received = time.monotonic()
            for line in self._lines.feed(data) if data else self._lines.finish():
                if line is None:
                    problem = f"not a JSON message: longer than {FRAME_LIMIT} bytes"
                    self._output.send(error_frame(RpcError(PARSE_ERROR, problem)))
                else:
                    self.connection.receive(line, received)
            if not data:
                return

    def _ready(self, poll: Any) -> bool:
        """Wait for input. False where something else happened: look again at signal and output."""
        if poll is None:
            return True  # the read itself waits
        happened = dict(poll.poll())
        if self._output_fd in happened:
            self._output.broken = True
        return self._input_fd in happened

    def _drain(self, seconds: float | None) -> bool:
        """Wait until all that was admitted is answered and written; False where that cannot be."""
        until = None if seconds is None else time.monotonic() + seconds
        poll = self._poll()
        while not (self._slots.idle() and self._output.idle()):
            if self._output.broken or (until is not None and time.monotonic() > until):
                return False
            if self._signal is not None and until is None:
                self.connection.stop(answer=True)
                until = time.monotonic() + GRACE
            if poll is None:
                time.sleep(_DRAIN_POLL_MS / 1000)
            elif self._output_fd in dict(poll.poll(_DRAIN_POLL_MS)):
                self._output.broken = True
        return not self._output.broken

    def _poll(self, *inputs: int) -> Any:
        """Waits for these descriptors and, asked for nothing, for an output whose reader is gone. None on Windows."""
        if not hasattr(select, "poll"):
            return None
        poll = select.poll()
        for fd in inputs:
            poll.register(fd, select.POLLIN)
        poll.register(self._output_fd, 0)
        return poll

    def _listen_to_signals(self) -> None:
        # The byte in the pipe ends a poll; without it a signal that comes just before the poll would be slept over.
        os.set_blocking(self._woken_fd, False)
        signal.set_wakeup_fd(self._woken_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: Any) -> None:
        if self._signal is None:
            self._signal = number
            # Should this very thread wait for a client that does not read, nothing else would end the process.
            last = threading.Timer(GRACE + 2 * LAST_GRACE, _leave, [EXIT_IO])
            last.daemon = True
            last.start()


def _take_descriptors() -> tuple[int, int]:
    """Keep the protocol's descriptors out of reach: prints go to stderr, and a child process finds no input."""
    nothing = os.open(os.devnull, os.O_RDWR)
    if not _is_open(2):
        os.dup2(nothing, 2)
    taken = []
    for fd, instead in ((0, nothing), (1, 2)):
        taken.append(os.dup(fd if _is_open(fd) else nothing))
        os.dup2(instead, fd)
    if nothing > 2:
        os.close(nothing)
    return taken[0], taken[1]


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _leave(code: int) -> None:
    """End at once: a thread hangs that cannot be stopped."""
    sys.stderr.flush()
    os._exit(code)
