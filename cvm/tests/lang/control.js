// Completion through finally, labels, loops, generators and iterators.
const out = [];
function f1() { try { return "try"; } finally { out.push("f1"); } }
function f2() { try { throw new Error("x"); } catch (e) { return e.message; } finally { out.push("f2"); } }
function f3() { for (const x of [1, 2, 3]) { try { if (x === 2) continue; if (x === 3) break; out.push(x); } finally { out.push("fin" + x); } } return "end"; }
function f4() { outer: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 1) continue outer; if (i === 2) break outer; out.push(i * 10 + j); } } return "labels"; }
function f5() { try { return "lost"; } finally { return "kept"; } }
function f6() { let n = 0; while (true) { try { n++; if (n < 3) continue; return n; } finally { if (n === 1) out.push("first"); } } }
function f7() { block: { try { break block; } finally { out.push("block"); } } return "after"; }
for (const f of [f1, f2, f3, f4, f5, f6, f7]) out.push(f());
function iter(log) { let n = 0; return { [Symbol.iterator]() { return this; }, next() { return { value: n++, done: n > 4 }; }, return() { log.push("closed"); return {}; } }; }
for (const x of iter(out)) if (x === 1) break;
try { for (const x of iter(out)) throw new Error("body"); } catch (e) { out.push(e.message); }
const [a, b] = iter(out);
out.push(a + b);
function* g() { try { yield 1; yield 2; } finally { out.push("g closed"); } }
const it = g(); it.next(); out.push(it.return(7).value);
function* d() { const r = yield* g(); out.push(r); return "d"; }
out.push([...d()].join());
let log = "";
for (var v = 0, fs = []; v < 2; v++) { let k = v; fs.push(() => k); }
out.push(fs.map((f) => f()).join());
const fs2 = []; for (let i = 0; i < 3; i++) { fs2.push(() => i); i += 0; } out.push(fs2.map((f) => f()).join());
switch (3) { default: log += "d"; case 1: log += "1"; break; case 2: log += "2"; }
out.push(log);
do { log += "x"; if (log.length > 4) break; } while (true);
out.push(log);
try { (() => { x; let x = 1; })(); } catch (e) { out.push(e.message); }
try { const c = 1; c = 2; } catch (e) { out.push(e.message); }
void globalThis.undefinedName;
try { undefinedName; } catch (e) { out.push(e.message); }
try { null.foo; } catch (e) { out.push(e.message); }
try { (void 0)(); } catch (e) { out.push(e.message); }
try { class A { constructor() { this.x; } } class B extends A { constructor() { this.x = 1; } } new B(); } catch (e) { out.push(e.message.slice(0, 30)); }
const o = { a: 1, get b() { return this.a + 1; }, ["c" + 1]: 3, __proto__: { z: 9 }, m() { return super.z; } };
out.push(o.b, o.c1, o.z, o.m(), Object.keys(o).join());
let q = null; q ??= 5; q ||= 6; q &&= 7; out.push(q, o?.x?.y.z, o?.m?.(), (o?.m)(), delete o.a, "a" in o);
out.push(((...r) => r.length)(1, ...[2, 3], 4), Math.max(...[1, 5, 3]));
class P { static #n = 0; #v; constructor(v) { this.#v = v; P.#n++; } get v() { return this.#v; } set v(x) { this.#v = x; } #secret() { return "s" + this.#v; } reveal() { return this.#secret(); } static count() { return P.#n; } static { this.made = "static block"; } static has(x) { return #v in x; } }
const p = new P(1); p.v += 4; out.push(p.v, p.reveal(), P.count(), P.made, P.has(p), P.has({}));
class E2 extends Error { constructor(m) { super(m); this.name = "E2"; } }
try { throw new E2("sub"); } catch (e) { out.push(String(e), e instanceof E2, e instanceof Error); }
out.push(typeof Symbol.iterator, 10n ** 20n, 7n / 2n, -5n % 3n, 2 ** -1, 5 % -3, -0 === 0, Object.is(-0, 0), 1 / -0);
out.push([1, , 3].length, [..."héé😀"].length, "😀".length, `a${1}b${[1, 2]}c`, String.raw`\n${1}`);
var { x1 = 10, y1: { z1 = x1 + 1 } = {}, ...others } = { w: 1, u: 2 };
out.push(x1, z1, others);
[p.v, o.d = 3, ...out.tail] = [8]; out.push(p.v, o.d, out.tail);
function args() { return arguments.length + [].slice.call(arguments, 1).join(); }
out.push(args(1, 2, 3), (function (a, b = 2, ...c) {}).length, (() => {}).name, args.name, (class Foo {}).name);
console.log(out.map((x) => (typeof x === "object" ? JSON.stringify(x) : typeof x === "bigint" ? x + "n" : String(x))).join("\n"));
async function main() {
  const order = [];
  setTimeoutless(order);
  await Promise.all([1, 2].map(async (x) => { order.push("start" + x); await null; order.push("end" + x); }));
  try { await Promise.reject(new Error("rejected")); } catch (e) { order.push(e.message); }
  const r = await Promise.allSettled([1, Promise.reject(2)]);
  order.push(r.map((x) => x.status).join());
  async function* ag() { try { yield 1; yield 2; } finally { order.push("ag closed"); } }
  for await (const x of ag()) { order.push(x); if (x === 1) break; }
  order.push(await Promise.race([new Promise(() => {}), "fast"]), await Promise.any([Promise.reject(1), 2]));
  return order;
}
function setTimeoutless(order) { Promise.resolve().then(() => order.push("micro")); order.push("sync"); }
