#!/usr/bin/env python3
"""How long a daemon takes to take over the live sessions of one that was killed.

    benches/adoption.py target/release/vm-system [COUNT…]

For each COUNT (1, 100 and 1000 by default): creates so many sessions of one owner, of which one in twenty runs code that prints (at most 1000 lines), kills
the daemon with SIGKILL, starts the next one, and measures the time until it reports READY to its service manager, which this script
is, and until the first session has evaluated `1+1`. Checks that all sessions are live.
Needs no package; the daemon and its folder are this script's own.
"""

import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=300)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(300)
        self.sock.connect(self.path)


def ask(path, method, resource, body=None):
    connection = Unix(path)
    fields = {"content-type": "application/json"}
    connection.request(method, "/api/v1" + resource, None if body is None else json.dumps(body), fields)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    value = json.loads(text) if text else None
    assert response.status < 300, (resource, response.status, value)
    return value


class Daemon:
    def __init__(self, binary, folder):
        self.http = f"{folder}/run/http.sock"
        notify = f"{folder}/notify"
        if os.path.exists(notify):
            os.unlink(notify)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(notify)
        os.chmod(notify, 0o777)
        manager.settimeout(120)
        command = [binary, "serve", "--state-dir", f"{folder}/state", "--socket", f"{folder}/run/control.sock"]
        command += ["--config", f"{folder}/config.toml"]
        if os.geteuid() == 0:
            command += ["--user", os.environ.get("VM_SYSTEM_USER", "nobody"), "--root-files"]
        begin = time.monotonic()
        log = open(f"{folder}/log", "a")
        self.process = subprocess.Popen(command, stderr=log, env={**os.environ, "NOTIFY_SOCKET": notify})
        while not manager.recv(4096).startswith(b"READY=1"):
            pass
        self.ready_ms = (time.monotonic() - begin) * 1000

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


PRINTS = "for (let n = 0; n < 1e6; n++) { console.log(n); await new Promise(go => setTimeout(go, 200)) }"


def measure(binary, count):
    folder = tempfile.mkdtemp(prefix="adoption-")
    os.chmod(folder, 0o755)
    os.makedirs(f"{folder}/work")
    with open(f"{folder}/config.toml", "w") as file:
        most = count + 100
        file.write(f"[shares.sessions]\nmost = {2 * most}\n")
    first = Daemon(binary, folder)
    try:
        template = ask(first.http, "POST", "/templates", {"name": "t"})["id"]
        new = {"template_id": template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": f"{folder}/work"}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            create = lambda _: ask(first.http, "POST", "/sessions", new)["id"]
            sessions = list(pool.map(create, range(count)))
        for session in sessions[1::20]:
            ask(first.http, "POST", "/executions/repl?wait=false", {"session_id": session, "input": PRINTS})
        first.kill()
        begin = time.monotonic()
        second = Daemon(binary, folder)
    except BaseException:
        first.process.kill()
        raise
    try:
        body = {"session_id": sessions[0], "input": "1+1"}
        assert ask(second.http, "POST", "/executions/repl", body)["status"] == "ok"
        usable_ms = (time.monotonic() - begin) * 1000
        ready = ask(second.http, "GET", "/runtime/summary")["active_sessions"]
        print(
            f"{count:5} sessions: first start {first.ready_ms:6.0f} ms, start with adoption {second.ready_ms:6.0f} ms, "
            f"usable after {usable_ms:6.0f} ms, {ready} live",
            flush=True,
        )
        assert ready == count, (ready, count)
    finally:
        second.stop()
        shutil.rmtree(folder)


def main():
    binary = sys.argv[1]
    for count in [int(text) for text in sys.argv[2:]] or [1, 100, 1000]:
        measure(binary, count)


main()
