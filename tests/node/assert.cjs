const assert = require('assert');
const cases = [
  () => assert.ok(false, 'message'), () => assert.equal(1, 2), () => assert.equal(1, '1'), () => assert.strictEqual(1, 2), () => assert.strictEqual('a', 'b'),
  () => assert.strictEqual({ a: 1 }, { a: 1 }), () => assert.deepStrictEqual({ a: 1, b: 2 }, { a: 1, b: 3 }), () => assert.deepStrictEqual([1, 2, 3], [1, 2, 4]),
  () => assert.deepEqual({ a: 1 }, { a: '1' }), () => assert.deepEqual({ a: 1 }, { a: 2 }), () => assert.notStrictEqual(1, 1), () => assert.notDeepStrictEqual({ a: 1 }, { a: 1 }),
  () => assert.throws(() => { throw new TypeError('bad'); }, TypeError), () => assert.throws(() => { throw new TypeError('bad'); }, /good/),
  () => assert.throws(() => {}), () => assert.throws(() => {}, TypeError, 'why'), () => assert.throws(() => { throw new Error('x'); }, { message: 'y' }),
  () => assert.doesNotThrow(() => { throw new Error('x'); }), () => assert.match('abc', /x/), () => assert.doesNotMatch('abc', /b/), () => assert.fail(), () => assert.fail('boom'),
  () => assert.ifError(null), () => assert.ifError(new Error('e')), () => assert.strict.equal(1, '1'), () => assert.deepStrictEqual(new Set([1, 2]), new Set([1, 3])),
  () => assert.strictEqual(1), () => assert.deepStrictEqual(new Map([[{ k: 1 }, 1]]), new Map([[{ k: 1 }, 1]])), () => assert.strictEqual(NaN, NaN),
];
for (const [i, run] of cases.entries()) {
  try { run(); console.log(i, 'passes'); } catch (e) { console.log(i, e.name, e.code, e.operator, e.generatedMessage, e.message); }
}
(async () => {
  await assert.rejects(Promise.reject(new Error('r')), /r/);
  await assert.rejects(Promise.resolve(1)).catch((e) => console.log(e.message));
  console.log(require('assert/strict').equal === assert.strict.strictEqual, new assert.AssertionError({ actual: 1, expected: 2, operator: 'strictEqual' }).message);
})();
