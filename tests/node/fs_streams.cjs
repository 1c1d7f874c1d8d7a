const fs = require('fs');
const { pipeline } = require('stream/promises');
(async () => {
  fs.writeFileSync('in.txt', 'line\n'.repeat(40000));
  let bytes = 0;
  let chunks = 0;
  for await (const chunk of fs.createReadStream('in.txt')) { bytes += chunk.length; chunks++; }
  console.log(bytes, chunks);
  await pipeline(fs.createReadStream('in.txt', { start: 2, end: 11, encoding: 'utf8' }), fs.createWriteStream('out.txt'));
  console.log(JSON.stringify(fs.readFileSync('out.txt', 'utf8')));
  const out = fs.createWriteStream('out.txt', { flags: 'a' });
  out.write('more ');
  // One after the other: node opens and writes files in several threads.
  await new Promise((done) => out.end('text', done));
  console.log(out.bytesWritten, fs.readFileSync('out.txt', 'utf8').slice(-9));
  fs.createReadStream('nothing').on('error', (e) => console.log(e.code, e.syscall, e.path)).on('close', () => console.log('close'));
})();
