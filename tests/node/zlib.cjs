const zlib = require('zlib');
const { pipeline } = require('stream/promises');
const text = 'the same words again and again. '.repeat(300);
for (const [pack, unpack] of [['gzipSync', 'gunzipSync'], ['deflateSync', 'inflateSync'], ['deflateRawSync', 'inflateRawSync'], ['gzipSync', 'unzipSync'], ['deflateSync', 'unzipSync']]) {
  const packed = zlib[pack](text);
  console.log(pack, packed.length < text.length / 10, zlib[unpack](packed).toString() === text);
  for (const broken of [packed.subarray(0, packed.length >> 1), Buffer.from('nothing that is packed')]) {
    if (pack === 'deflateRawSync' && broken[0] === 110) continue;
    try { zlib[unpack](broken); } catch (e) { console.log(e.message, e.code, e.errno); }
  }
  try { zlib[unpack](packed, { maxOutputLength: 100 }); } catch (e) { console.log(e.name, e.code, e.message); }
}
console.log(zlib.gunzipSync(Buffer.from('H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==', 'base64')).toString(), zlib.constants.Z_BEST_COMPRESSION);
const brotli = Buffer.from('G38lYKRAXHqQQxa5DGzAeWBl4y6RKj9CWKMDIAE=', 'base64');
for (const call of [() => zlib.brotliDecompressSync(brotli), () => zlib.brotliDecompressSync(brotli.subarray(0, 20)), () => zlib.brotliDecompressSync('nothing that is packed'),
  () => zlib.brotliDecompressSync(Buffer.alloc(0)), () => zlib.brotliDecompressSync(brotli, { maxOutputLength: 100 }), () => zlib.brotliDecompressSync(5),
  () => zlib.brotliDecompressSync(Buffer.concat([brotli, Buffer.from('more')])), () => zlib.brotliDecompressSync(brotli.subarray(0, 20), { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH })]) {
  try { console.log(call().length); } catch (e) { console.log(e.name, e.message, e.code, e.errno); }
}
for (const call of [() => zlib.gzipSync(5), () => zlib.gzipSync('a', { level: 12 })]) try { call(); } catch (e) { console.log(e.name, e.code, e.message); }
(async () => {
  await new Promise((done) => {
    zlib.gzip('callback', (error, packed) => zlib.gunzip(packed, (failed, out) => done(console.log(error, failed, out.toString()))));
  });
  await new Promise((done) => { zlib.brotliDecompress(brotli, (error, out) => done(console.log(error, out.toString() === text))); });
  for (const pieces of [[brotli.subarray(0, 7), brotli.subarray(7)], [brotli, Buffer.from('x')], [brotli.subarray(0, 20)], [Buffer.from('nothing that is packed')]]) {
    const read = async (source) => { let size = 0; for await (const chunk of source) size += chunk.length; console.log('brotli', size); };
    await pipeline(pieces, zlib.createBrotliDecompress(), read).catch((e) => console.log(e.code, e.errno, e.message));
  }
  const chunks = [];
  await pipeline([Buffer.from(text)], zlib.createGzip(), zlib.createGunzip(), async (source) => { for await (const chunk of source) chunks.push(chunk); });
  console.log(Buffer.concat(chunks).toString() === text);
  await pipeline([Buffer.from('not packed')], zlib.createGunzip(), async (source) => { for await (const _ of source); }).catch((e) => console.log(e.code, e.message));
})();
