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
for (const call of [() => zlib.gzipSync(5), () => zlib.gzipSync('a', { level: 12 })]) try { call(); } catch (e) { console.log(e.name, e.code, e.message); }
(async () => {
  await new Promise((done) => {
    zlib.gzip('callback', (error, packed) => zlib.gunzip(packed, (failed, out) => done(console.log(error, failed, out.toString()))));
  });
  const chunks = [];
  await pipeline([Buffer.from(text)], zlib.createGzip(), zlib.createGunzip(), async (source) => { for await (const chunk of source) chunks.push(chunk); });
  console.log(Buffer.concat(chunks).toString() === text);
  await pipeline([Buffer.from('not packed')], zlib.createGunzip(), async (source) => { for await (const _ of source); }).catch((e) => console.log(e.code, e.message));
})();
