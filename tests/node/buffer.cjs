const { Buffer: B, constants, isUtf8, transcode } = require('buffer');
console.log(B === Buffer, constants.MAX_STRING_LENGTH > 0, isUtf8(B.from([0xff])), isUtf8(B.from('\u00e9')), transcode(B.from('\u20ac'), 'utf8', 'utf16le'));
const b = B.from('abcabc');
console.log(b.indexOf('c'), b.lastIndexOf('c'), b.lastIndexOf('ab', -3), b.includes('bc'), B.from([1, 2, 3, 4]).swap16(), B.from([1, 2, 3, 4]).swap32());
console.log(B.alloc(3, 'ab'), B.concat([b, B.from('x')]).toString(), b.slice(1, 3).toString(), B.compare(B.from('a'), B.from('b')), b.equals(B.from('abcabc')));
console.log(B.from('ff', 'hex').readUIntBE(0, 1), B.from([1, 2, 3]).readUIntLE(0, 3), B.from([255, 255, 254]).readIntBE(0, 3), b.toJSON().data.length);
const w = B.alloc(8);
w.writeUInt32BE(0xdeadbeef, 0);
w.writeIntLE(-2, 4, 3);
console.log(w, w.readInt16LE(2), B.byteLength('\u20ac'), B.isEncoding('UTF-8'), B.isEncoding('nope'), B.from(new Uint16Array([1, 256])));
for (const call of [() => B.alloc(2).readUInt32LE(0), () => B.alloc(2).writeUInt8(300, 0), () => B.from(5), () => B.alloc(-1), () => B.alloc(3).swap16(), () => B.from('a').readInt8(5)]) {
  try { console.log(call()); } catch (e) { console.log(e.name, e.code, e.message); }
}
