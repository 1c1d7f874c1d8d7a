// Writes bytes.txt: runs every case below in Node and records what it wrote.
// `node cvm/tests/common/bytes.js > cvm/tests/common/bytes.txt` (Node 20).
const cases = [
  String.raw`console.log(new Uint8Array([1, 2, 300]), new Int16Array(0), [new Float32Array([1.5, NaN, -0])], { a: new BigInt64Array([1n, -2n]) })`,
  String.raw`console.log(new ArrayBuffer(4), new Uint8Array(3).buffer, new DataView(new ArrayBuffer(5), 1, 3), [new ArrayBuffer(0)])`,
  String.raw`console.log(new ArrayBuffer(60), new Uint8Array(120), new Uint16Array(101).fill(7))`,
  String.raw`const b = new ArrayBuffer(8); const u = new Uint8Array(b); structuredClone(b, { transfer: [b] }); console.log(u.length, u.byteOffset, b.byteLength, u, b)`,
  String.raw`class Mine extends Uint8Array {} const m = new Mine(2); m.extra = 'x'; console.log(m, Mine.from([1]), m.constructor.name, Object.prototype.toString.call(m))`,
  String.raw`console.log(Uint8Array, Uint8Array.prototype.constructor === Uint8Array, Object.getPrototypeOf(Int8Array).name, ArrayBuffer, DataView.name)`,
  String.raw`console.log(Object.keys(new Uint8Array(2)), JSON.stringify(new Uint8Array([1, 2])), JSON.stringify({ a: new Float64Array([1.5]), b: new ArrayBuffer(2) }))`,
  String.raw`console.log(JSON.stringify(new ArrayBuffer(8)), { ...new Uint8Array([7]) }, Object.entries(new Int8Array([9])))`,
  String.raw`console.log(new Float64Array([3, 1, 2]).sort(), new Float64Array([NaN, 1, -0, 0]).sort(), new Uint8Array([5, 1, 4]).toSorted((a, b) => b - a))`,
  String.raw`console.log(new Uint8Array([1, 2, 3, 4]).subarray(1, 3), new Uint8Array([1, 2, 3, 4]).slice(-2), new Uint8Array([1, 2, 3]).with(1, 9), new Uint8Array([1, 2]).toReversed())`,
  String.raw`console.log(structuredClone(new Uint8Array([1, 2])), structuredClone({ a: new ArrayBuffer(2), b: new DataView(new ArrayBuffer(3), 1) }))`,
  String.raw`const b = new Uint8Array([1, 2]).buffer; const c = structuredClone({ b, v: new Uint8Array(b, 1) }, { transfer: [b] }); console.log(b.byteLength, c, c.v.buffer === c.b)`,
  String.raw`const b = new ArrayBuffer(1); try { structuredClone(1, { transfer: [b, b] }) } catch (e) { console.log(e.name, e.code) } try { structuredClone(1, { transfer: [{}] }) } catch (e) { console.log(e.name) } structuredClone(b, { transfer: [b] }); try { new Uint8Array(b) } catch (e) { console.log(e.name) }`,
  String.raw`console.log(new TextEncoder().encode('aé€😀'), new TextEncoder().encode(), new TextEncoder().encode('\ud800x'), new TextEncoder().encoding)`,
  String.raw`const t = new Uint8Array(5); console.log(new TextEncoder().encodeInto('a€😀', t), t, new TextEncoder().encodeInto('abc', new Uint8Array(0)), new TextEncoder().encodeInto('é', new Uint8Array(1)))`,
  String.raw`console.log(new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff])), new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0, 0x3d, 0xd8])), new TextDecoder('latin1').encoding)`,
  String.raw`const d = new TextDecoder(); console.log(JSON.stringify([d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }), d.decode(new Uint8Array([0xac, 0xf0]), { stream: true }), d.decode()]))`,
  String.raw`const d = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }); console.log(d.fatal, d.ignoreBOM, d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x41])).length); try { d.decode(new Uint8Array([0xff])) } catch (e) { console.log(e.name, e.code) }`,
  String.raw`try { new TextDecoder('none') } catch (e) { console.log(e.name, e.code) } try { new TextDecoder().decode('x') } catch (e) { console.log(e.name, e.code) }`,
  String.raw`const d = new DataView(new ArrayBuffer(16)); d.setUint32(0, 0xdeadbeef); d.setBigInt64(8, -1n, true); console.log(d.getUint8(0), d.getUint16(0, true), d.getInt32(0), d.getBigUint64(8), d.getFloat32(8)); try { d.getInt8(16) } catch (e) { console.log(e.name) }`,
  String.raw`const a = crypto.getRandomValues(new Uint32Array(4)); console.log(a.length, a.some((n) => n > 0)); try { crypto.getRandomValues(new Uint8Array(65537)) } catch (e) { console.log(e.name, e.code) } try { crypto.getRandomValues(new Float32Array(1)) } catch (e) { console.log(e.name) }`,
  String.raw`for (const x of new Uint8Array([1, 2])) console.log(x); const [p, ...q] = new Int8Array([1, 2, 3]); console.log(p, q, Array.from(new Uint8Array([4])), [...new Float32Array([1.5]).entries()])`,
  String.raw`const f = new Float32Array(3); f[0] = 1.1; f[1] = '2'; f[5] = 1; f['-0'] = 1; f.x = 1; console.log(f, f[5], '-0' in f, 5 in f, delete f.x); try { (() => { 'use strict'; delete f[0] })() } catch (e) { console.log(e.name) }`,
  String.raw`const o = Object.create(new Uint8Array(2)); o[0] = 5; o[7] = 1; console.log(Object.keys(o), o[1], o[7], 7 in o); try { Object.freeze(new Uint8Array(1)) } catch (e) { console.log(e.name) }`,
  String.raw`console.log(Uint8Array.of(1, 2), Uint8Array.from('123'), Uint8Array.from({ length: 2, 0: 7 }), Uint8Array.from([1, 2], (x) => x * 2), new Uint8Array(new Set([3, 4])), new Uint8Array(new Float32Array([1.9])))`,
  String.raw`console.log([1, 2].concat(new Uint8Array([3])), Array.isArray(new Uint8Array(1)), ArrayBuffer.isView(new DataView(new ArrayBuffer(1))), new Uint8Array([1, 2]).map(String), Array.prototype.map.call(new Uint8Array([1]), String))`,
  String.raw`const r = new ArrayBuffer(2, { maxByteLength: 8 }); const v = new Uint8Array(r), w = new Uint8Array(r, 1, 1); r.resize(6); console.log(v.length, w.length, r.resizable, r.maxByteLength); r.resize(1); console.log(v.length, w.length, w.byteOffset)`,
];
const { execFileSync } = require('child_process');
for (const script of cases) {
  const text = execFileSync('node', ['-e', script], { encoding: 'utf8' }).replace(/\n$/, '');
  process.stdout.write(`${script}\n-----\n${text}\n=====\n`);
}
