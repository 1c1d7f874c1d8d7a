// Event loop, thread pool, worker threads, child processes with pipes and with a channel.
const { execFileSync, fork, spawn } = require('child_process');
const { Worker } = require('worker_threads');
const assert = require('assert');
const fs = require('fs');

if (process.send) {
    process.once('message', (number) => process.send(number * 2, () => process.disconnect()));
} else {
    main().then(() => console.log('ok'));
}

async function main() {
    fs.writeFileSync('text', 'some text');
    assert.equal(execFileSync('cat', ['text']).toString(), 'some text');
    const files = await Promise.all(Array.from({ length: 20 }, () => fs.promises.readFile('text', 'utf8')));
    assert.equal(files.length, 20);
    const child = fork(__filename);
    child.send(21);
    assert.equal(await new Promise((resolve) => child.once('message', resolve)), 42);
    const upper = spawn('tr', ['a-z', 'A-Z']);
    upper.stdin.end('text');
    assert.equal((await new Promise((resolve) => upper.stdout.once('data', resolve))).toString(), 'TEXT');
    const worker = new Worker('require("worker_threads").parentPort.postMessage(7)', { eval: true });
    assert.equal(await new Promise((resolve) => worker.once('message', resolve)), 7);
    const watcher = fs.watch('.');
    const change = new Promise((resolve) => watcher.once('change', resolve));
    fs.renameSync('text', 'renamed');
    await change;
    watcher.close();
    fs.rmSync('renamed');
    assert.equal(require('zlib').gunzipSync(require('zlib').gzipSync('zip')).toString(), 'zip');
    assert.equal(require('crypto').randomBytes(8).length, 8);
    assert(process.memoryUsage().rss > 0 && require('os').cpus().length >= 0);
    await assert.rejects(new Promise((_, reject) => require('net').connect('socket').once('error', reject)));
    await new Promise((resolve) => setTimeout(resolve, 1));
}
