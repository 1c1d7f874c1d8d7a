const { StringDecoder } = require('string_decoder');
const bytes = Buffer.concat([Buffer.from('a\u00e9\u20ac\u{1f600}z'), Buffer.from([0xff, 0xe2, 0x82, 0x41, 0xf0, 0x9f])]);
for (const encoding of ['utf8', 'utf16le', 'base64', 'hex', 'latin1', 'ascii', 'base64url']) {
  for (let n = 1; n < 6; n++) {
    const decoder = new StringDecoder(encoding);
    let out = '';
    for (let i = 0; i < bytes.length; i += n) out += `${decoder.write(bytes.subarray(i, i + n))}|`;
    console.log(encoding, n, JSON.stringify(out + decoder.end()));
  }
}
try { new StringDecoder('nothing'); } catch (e) { console.log(e.code, e.message); }
