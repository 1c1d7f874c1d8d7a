// A pause from everywhere.
const log = [];
function ask(x) { return CC(x); }
log.push([1, 2].map((x) => ask("map " + x)));
const getter = { get g() { return ask("getter"); } };
log.push(getter.g);
const setter = { set s(v) { log.push(ask("setter " + v)); } };
setter.s = 5;
const { d = ask("default") } = {};
log.push(d);
function fin() { try { return "value"; } finally { log.push(ask("finally")); } }
log.push(fin());
function* gen() { const a = ask("generator"); yield a; yield ask("generator again"); }
log.push([...gen()]);
log.push([3, 1, 2].sort((a, b) => { ask("sort " + a + " " + b); return a - b; }));
log.push(`${{ toString() { return ask("toString"); } }}`);
log.push(1 + { valueOf() { ask("valueOf"); return 41; } });
log.push(JSON.stringify({ a: { toJSON() { return ask("toJSON"); } } }));
class C { x = ask("field"); static y = ask("static field"); constructor() { this.z = ask("constructor"); } get [ask("computed key")]() { return 1; } }
log.push(new C());
log.push("a-b".replace(/-/, () => ask("replace")));
log.push([[1, 2]].flatMap((x) => ask("flatMap")));
for (const x of { [Symbol.iterator]() { let n = 0; return { next() { return { done: n++ > 1, value: ask("next") }; }, return() { log.push(ask("return")); return {}; } }; } }) { log.push(x); break; }
const proxy = new Proxy({}, { get(t, k) { return typeof k === "symbol" ? undefined : ask("proxy " + k); }, has() { return !!ask("has"); } });
log.push(proxy.p, "q" in proxy);
log.push(Array.from([1], () => ask("from")));
log.push({} instanceof { [Symbol.hasInstance]() { return ask("hasInstance"); } });
async function later() { await null; log.push(ask("async")); await later2(); return ask("async end"); }
async function later2() { for await (const v of [ask("for await")]) log.push(v); }
async function* agen() { yield ask("async generator"); }
async function main() {
  log.push(await later());
  for await (const v of agen()) log.push(v);
  try { throw ask("throw"); } catch (e) { log.push(e); }
  console.log(fs.readFile("x"));
  for (const entry of log) console.log(entry);
  return log.length;
}
