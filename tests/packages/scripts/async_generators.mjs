async function* pages(n) { for (let page = 1; page <= n; page++) { await new Promise((r) => setTimeout(r, 1)); yield { page, items: Array.from({ length: 2 }, (_, i) => `p${page}i${i}`) }; } }
async function* flat(source) { try { for await (const { items } of source) yield* items; } finally { console.log('closed'); } }
for await (const item of flat(pages(3))) { console.log(item); if (item === 'p2i0') break; }
function* fib() { let [a, b] = [0, 1]; for (;;) { const reset = yield a; [a, b] = reset ? [0, 1] : [b, a + b]; } }
const it = fib(); console.log(Array.from({ length: 8 }, () => it.next().value), it.next(true), it.return(7), it.next(), [...'ab'.matchAll(/./g)].length);
console.log(it, pages(1), Object.prototype.toString.call(it), [...(function* () { yield* [1, 2]; return 3; })()]);
