// Stacks of resources: order, errors of errors, and pauses while disposing.
const log = [];
const resource = (name, fails = false) => ({ [Symbol.dispose]() { log.push(CC("dispose " + name)); if (fails) throw new Error(name); } });
const stack = new DisposableStack();
stack.use(resource("first")); stack.use(null); stack.adopt("value", (v) => log.push("adopted " + v)); stack.defer(() => log.push("deferred"));
const moved = stack.move();
console.log(stack.disposed, moved.disposed, moved instanceof DisposableStack);
moved.dispose(); moved.dispose();
console.log(log.splice(0).join(", "), moved.disposed);
try { stack.use(resource("late")); } catch (e) { console.log(e.name, e.message); }
const failing = new DisposableStack();
failing.use(resource("a", true)); failing.use(resource("b")); failing.use(resource("c", true));
try { failing.dispose(); } catch (e) { console.log(e.name, e.error.message, e.suppressed.message, log.splice(0).join(", ")); }
for (const bad of [5, {}, { [Symbol.dispose]: 1 }]) try { new DisposableStack().use(bad); } catch (e) { console.log(e.name, e.message); }
const it = { __proto__: Iterator.prototype, return() { log.push("returned"); return {}; } };
it[Symbol.dispose](); console.log(log.splice(0).join());
async function main() {
  const later = new AsyncDisposableStack();
  later.use({ async [Symbol.asyncDispose]() { await null; log.push(CC("async")); } });
  later.use(resource("sync in async", true)); later.use(undefined); later.defer(async () => { throw new TypeError("deferred"); });
  const ending = later.disposeAsync();
  log.push("begun");
  try { await ending; } catch (e) { log.push(e.name, e.error.message, e.suppressed.message); }
  console.log(log.splice(0).join(", "), later.disposed, await later.disposeAsync());
  try { await AsyncDisposableStack.prototype.disposeAsync.call(1); } catch (e) { console.log(e.name); }
  const e = new SuppressedError(1, 2, "text"); console.log(e.error, e.suppressed, e.message, e instanceof Error, SuppressedError.length);
}
