// Buffers and typed arrays.
const show = (name, value) => console.log(name, value);
const attempt = (name, run) => {
  try { show(name, run()); } catch (e) { console.log(name, e.name + ': ' + e.message); }
};
const a = new Uint8Array([1, 2, 300, -1]);
show('converted', a);
show('length', [a.length, a.byteLength, a.byteOffset, a.buffer.byteLength]);
a[1] = '7'; a[9] = 1; a['-0'] = 1; a['1.5'] = 2; a.own = 'x';
show('written', a);
show('missing', [a[9], a[-1], a['-0'], '1.5' in a, 3 in a, 4 in a, Object.keys(a)]);
show('text', [new TextEncoder().encode('h€'), new TextDecoder().decode(new Uint8Array([0xe2, 0x82, 0xac])), Uint8Array.fromBase64('AQID'), mineOf().toHex()]);
function mineOf() { return Uint8Array.fromHex('00ff7a'); }
show('object', (() => { const f = new Float32Array(2); const v = { valueOf() { return 2.5; } }; return [f[0] = v, f]; })());
attempt('symbol', () => { a[0] = Symbol('s'); });
const big = new BigInt64Array(2);
big[0] = -5n; big[1] = 2n ** 64n + 3n;
show('bigints', [big, big[0], big[1]]);
attempt('mixed', () => { big[0] = 1; });
attempt('mixed set', () => big.set([1]));
for (const C of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float16Array, Float32Array, Float64Array]) {
  const t = C.from([3, 1, 2, 255.5, -1]);
  show(C.name, [t, C.BYTES_PER_ELEMENT, t.toSorted(), t.slice(1, 3), t.subarray(-2), t.indexOf(2), t.includes(3), t.join('-')]);
}
const buffer = new ArrayBuffer(8, { maxByteLength: 16 });
const view = new DataView(buffer), words = new Uint16Array(buffer), two = new Uint16Array(buffer, 2, 2);
view.setInt16(0, 258); view.setFloat64(0, Math.PI, true); view.setBigUint64(0, 2n ** 63n + 1n);
show('view', [view.getUint8(0), view.getBigInt64(0), view.getFloat32(4), words]);
buffer.resize(12); show('grown', [words.length, two.length, view.byteLength]);
buffer.resize(4); show('shrunk', [words.length, two.length, two[0], two.byteOffset]);
attempt('out of bounds', () => two.fill(1));
const moved = buffer.transfer(6);
show('transferred', [buffer.detached, words.length, moved.byteLength, moved.resizable]);
attempt('detached', () => view.getInt8(0));
attempt('detached values', () => [...words]);
attempt('offset', () => new Uint32Array(new ArrayBuffer(8), 2));
attempt('length', () => new Uint32Array(-1));
attempt('huge', () => new ArrayBuffer(2 ** 50));
class Mine extends Uint8Array { total() { return this.reduce((x, y) => x + y, 0); } }
const mine = Mine.of(1, 2, 3).map((x) => x * 2);
show('subclass', [mine, mine.total(), mine instanceof Uint8Array, mine.filter((x) => x > 2)]);
show('iteration', [[...mine], [...mine.entries()], Array.from(mine.keys()), Math.max(...mine)]);
const sorted = new Float64Array([NaN, 0, -0, 5, -Infinity, 2]).sort();
show('sorted', sorted); show('backwards', sorted.subarray(0, 5).sort((x, y) => y - x));
show('paused', [CC('between'), mine, moved]);
show('within', new Uint8Array([1, 2, 3, 4, 5]).copyWithin(1, 0, 3));
show('reversed', [mine.toReversed(), mine.with(0, 9), new Uint16Array([1, 2, 3]).reverse()]);
attempt('frozen', () => Object.freeze(mine));
show('sealed', Object.isFrozen(Object.freeze(new Uint8Array(0))));
show('tags', [Object.prototype.toString.call(mine), String(mine), JSON.stringify(new Uint8Array([1, 2]))]);
show('copy', { ...new Uint8Array([4, 5]) });
show('reflect', [Reflect.set(mine, 1, 77), Reflect.defineProperty(mine, 0, { value: 5 }), Reflect.defineProperty(mine, 9, { value: 5 }), mine]);
const clone = structuredClone({ a: mine, b: mine.buffer, v: new DataView(mine.buffer, 1) });
show('clone', [clone.a.buffer === clone.b, clone.v.buffer === clone.b, clone.a, clone.v.byteOffset]);
