"""Event loop, threads, child processes, temporary files, a database."""
import asyncio, os, shutil, signal, socket, sqlite3, subprocess, tempfile, threading, time


async def main():
    child = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = await child.communicate(b"through")
    loop = asyncio.get_running_loop()
    return out.decode(), await loop.run_in_executor(None, lambda: 6 * 7)


assert asyncio.run(main()) == ("through", 42)
left, right = socket.socketpair()
left.sendall(b"pair")
assert right.recv(4) == b"pair"
thread = threading.Thread(target=time.sleep, args=(0,))
thread.start()
thread.join()
folder = tempfile.mkdtemp()
with open(folder + "/a", "w") as file:
    file.write("text")
    file.flush()
    os.fsync(file.fileno())
shutil.copytree(folder, "copy")
os.rename("copy/a", "b")
os.rmdir("copy")
assert open("b").read() == "text"
os.remove("b")
database = sqlite3.connect("database")
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE t (a)")
database.execute("INSERT INTO t VALUES (1)")
database.commit()
database.close()
os.remove("database")
assert subprocess.run(["sh", "-c", "kill -9 $$"]).returncode == -signal.SIGKILL
assert os.path.exists("/proc/self/exe") and os.getuid() == os.geteuid()
try:
    socket.socket(socket.AF_UNIX)
    raise SystemExit("a socket")
except PermissionError:
    pass
print("ok")
