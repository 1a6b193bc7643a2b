# SPDX-License-Identifier: Apache-2.0
"""Runs a command with standard error on a terminal, and appends what the terminal is sent to a file.

Usage: on_terminal.py FILE COLUMNS COMMAND [ARG...]; the exit status is that of the command."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[2]), 0, 0))
process = subprocess.Popen(sys.argv[3:], stderr=slave)
os.close(slave)
with open(sys.argv[1], "ab", buffering=0) as f:
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        f.write(data)
sys.exit(process.wait())
