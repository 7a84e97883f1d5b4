"""relay.py LEFT RIGHT MILLISECONDS: two network devices that pass frames to each other; a frame there and its answer
take MILLISECONDS longer together."""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
TAP_WITHOUT_HEADER = 0x0002 | 0x1000


def device(name):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_WITHOUT_HEADER))
    return end


left, right = device(sys.argv[1]), device(sys.argv[2])
delay = float(sys.argv[3]) / 2000
other = {left: right, right: left}
# Every frame waits equally long, so the order of arrival is the order of leaving.
queue = collections.deque()

while True:
    wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
    for end in select.select([left, right], [], [], wait)[0]:
        for _ in range(256):
            try:
                frame = os.read(end, 65536)
            except (BlockingIOError, OSError):
                break
            queue.append((time.monotonic() + delay, other[end], frame))
    now = time.monotonic()
    while queue and queue[0][0] <= now:
        _, end, frame = queue.popleft()
        try:
            os.write(end, frame)
        except OSError:
            pass  # as a cable loses a frame
