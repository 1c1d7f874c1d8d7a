const crypto = require('node:crypto');
for (const name of ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha512-256', 'RSA-SHA256', 'SHA1']) {
  console.log(name, crypto.createHash(name).update('h\u00e9').update(Buffer.from([1, 2])).digest('hex'), crypto.createHmac(name, 'key').update('data').digest('base64'));
}
const hash = crypto.createHash('sha256').update('a');
console.log(hash.copy().digest('hex'), hash.update('b').digest('base64url'));
for (const call of [() => hash.update('x'), () => hash.digest(), () => crypto.createHash('nothing'), () => crypto.createHmac('nothing', 'k'), () => crypto.createHash('md5').update(5),
  () => crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('bb')), () => crypto.randomBytes('x'), () => crypto.randomInt(5, 5), () => crypto.pbkdf2Sync('p', 's', 0, 5, 'sha1')]) {
  try { console.log(call()); } catch (e) { console.log(e.name, e.code); }
}
console.log(crypto.pbkdf2Sync('secret', 'salt', 100, 40, 'sha512').toString('hex'), crypto.scryptSync('secret', 'salt', 32, { N: 16 }).toString('hex'));
console.log(Buffer.from(crypto.hkdfSync('sha256', 'key', 'salt', 'info', 40)).toString('hex'), crypto.timingSafeEqual(Buffer.from('ab'), Buffer.from('ab')));
console.log(crypto.randomBytes(8).length, /^[0-9a-f-]{36}$/.test(crypto.randomUUID()), crypto.randomInt(3) < 3, crypto.randomFillSync(new Uint8Array(4)).length, crypto.getHashes().includes('sha256'));
crypto.pbkdf2('p', 's', 1, 8, 'sha1', (error, key) => console.log(error, key.toString('hex')));
crypto.randomBytes(4, (error, bytes) => console.log(error, bytes.length));
const piped = crypto.createHash('sha1');
piped.setEncoding('hex');
piped.on('data', (text) => console.log('stream', text));
piped.end('streamed');
