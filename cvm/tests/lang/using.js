// Resources of a scope are disposed of when it is left, in reverse order and however that happens; pauses included.
const log = [];
const resource = (name, fails = false) => ({ name, [Symbol.dispose]() { log.push(CC("dispose " + name) && name); if (fails) throw new Error("disposing " + name); } });
const later = (name, fails = false) => ({ async [Symbol.asyncDispose]() { await null; log.push(CC("later " + name) && name); if (fails) throw new Error("later " + name); } });
const shown = () => log.splice(0).join(" ");
{ using a = resource("a"), b = null, c = resource("c"); log.push("block"); }
console.log(shown());
function early() { using a = resource("a"); for (using x of [resource("x"), resource("y")]) { if (x.name === "y") return x.name; continue; } }
console.log(early(), shown());
function broken() { using a = resource("a", true); using b = resource("b", true); throw new Error("body"); }
try { broken(); } catch (e) { console.log(e.name, e.error.message, e.suppressed.error.message, e.suppressed.suppressed.message, shown()); }
for (using i = resource("i"), n = { v: 0, [Symbol.dispose]() { log.push("n"); } }; n.v < 2; n.v++) log.push("turn");
console.log(shown());
try { (() => { using x = 5; })(); } catch (e) { console.log(e.name, e.message); }
try { (() => { using x = resource("x"); x = 1; })(); } catch (e) { console.log(e.name, shown()); }
try { (() => { log.push(typeof x); using x = resource("never"); })(); } catch (e) { console.log(e.name, shown()); }
function* gen() { using g = resource("g"); yield 1; yield 2; }
for (const v of gen()) { log.push(v); break; }
console.log(shown());
outer: for (const i of [1, 2]) { using o = resource("o" + i); for (;;) { using p = resource("p"); continue outer; } }
console.log(shown());
class C { static { using s = resource("static"); log.push("in static"); } }
console.log(shown());
async function main() {
  try {
    await using a = later("a"), b = null;
    using s = resource("sync", true);
    await using w = resource("waits");
    for await (await using z of [later("z1"), later("z2", true)]) log.push("loop");
  } catch (e) { console.log(e.name, e.error.message, e.suppressed.message); }
  console.log(shown());
  { await using nothing = undefined; }
  return (async () => { await using r = later("r"); return shown() + "result"; })();
}
